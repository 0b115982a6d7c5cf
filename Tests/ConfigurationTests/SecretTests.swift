import Configuration
import TestSupport
import Testing

@Suite struct SecretTests {
  private let directory = TemporaryDirectory()
  private let limits = "limits: { A: { most: 1 } }\n"

  private func load(
    _ file: String, environment: [String: String] = [:], overrides: [String] = []
  ) throws -> ConfigurationSchema.Loaded<Vault> {
    let path = directory.write("t.yaml", limits + file)
    let sources = ConfigurationSources(file: path, environment: environment, overrides: overrides)
    return try vaultSchema.load(Vault.self, from: sources)
  }

  @Test func readsSecretsFromFilesAndVariables() throws {
    let path = directory.write("password", "hunter2\n")
    #expect(try load("vault: { password: password }").value.password?.revealed == "hunter2")
    #expect(try load("vault: { password: \(path) }").value.password?.revealed == "hunter2")
    #expect(try load("", overrides: ["vault.password=\(path)"]).value.password?.revealed == "hunter2")
    #expect(try load("", environment: ["TEST_VAULT_PASSWORD_FILE": path]).value.password?.revealed == "hunter2")
    #expect(try load("", environment: ["TEST_VAULT_PASSWORD": "hunter3"]).value.password?.revealed == "hunter3")
    #expect(try load("").value.password == nil)
  }

  /// An editor writes more than is seen, and a server that is given it says no more than that the password is wrong.
  @Test func passesOverTheEndOfALineAndRefusesAByteOrderMark() throws {
    for text in ["hunter2", "hunter2\n", "hunter2\r\n"] {
      let path = directory.write("password", text)
      #expect(try load("vault: { password: \(path) }").value.password?.revealed == "hunter2")
    }
    for text in ["", "\n", "\r\n", "\u{feff}hunter2\n"] {
      let path = directory.write("password", text)
      let faults = vaultSchema.faults(Vault.self, file: limits + "vault: { password: \(path) }")
      #expect(faults.count == 1 && !faults.joined().contains("hunter2"), "\(faults)")
    }
  }

  @Test func readsSecretPropertiesFromFilesAndVariables() throws {
    let path = directory.write("password", "hunter2\n")
    for loaded in [
      try load("options: { sasl.password: password }"), try load("", overrides: ["options.sasl.password=\(path)"]),
      try load("", environment: ["TEST_OPTIONS_SASL_PASSWORD": "hunter2"]),
      try load("", environment: ["TEST_OPTIONS_SASL_PASSWORD_FILE": path]),
    ] {
      #expect(loaded.value.options["sasl.password"] == "hunter2")
      #expect(loaded.value.options.pairs.map(\.0) == ["sasl.password"])
    }
  }

  @Test func neverShowsASecret() throws {
    let environment = ["TEST_VAULT_PASSWORD": "hunter2", "TEST_OPTIONS_SASL_PASSWORD": "hunter2"]
    let vault = try load("options: { a: b }", environment: environment).value
    var dumped = ""
    dump(vault, to: &dumped)
    let sources = ConfigurationSources(file: directory.path + "/t.yaml", environment: environment)
    let report = vaultSchema.check(sources)
    for text in ["\(vault)", "\(vault.options)", "\(vault.options.all)", dumped, report.description] {
      #expect(!text.contains("hunter2"))
    }
    #expect(String(reflecting: vault.password).contains("«redacted»"))
    #expect(report.description.contains("vault.password         «redacted»  TEST_VAULT_PASSWORD\n"))
    #expect(report.description.contains("options.sasl.password  «redacted»  TEST_OPTIONS_SASL_PASSWORD\n"))
  }

  /// Its owner does not know the name, so nobody knows what the value is.
  @Test func showsNoSecretUnderAMisspeltName() throws {
    for (file, environment) in [
      ("options: { bad: hunter2 }", [:]), ("", ["TEST_OPTIONS_BAD": "hunter2"]),
      ("", ["TEST_VAULT_PASWORD": "hunter2"]),
    ] as [(String, [String: String])] {
      let path = directory.write("t.yaml", limits + file)
      let report = vaultSchema.check(ConfigurationSources(file: path, environment: environment))
      #expect(!report.isUsable && !report.description.contains("hunter2"), "\(report)")
    }
  }

  /// Who writes the secret itself where its file's path belongs must not find it in a log afterwards.
  @Test(
    arguments: [
      ("vault: { password: hunter2 }", [:]), ("vault: { password: [hunter2] }", [:]),
      ("vault: { password: { hunter2: x } }", [:]), ("options: { sasl.password: hunter2 }", [:]),
      ("", ["TEST_VAULT_PASSWORD_FILE": "hunter2"]), ("", ["TEST_OPTIONS_SASL_PASSWORD_FILE": "hunter2"]),
      ("", ["TEST_VAULT_PASSWORD": "hunter2\u{fffd}"]), ("", ["TEST_VAULT_PASSWROD": "hunter2"]),
      ("", ["TEST_VAULT_PASSWORD": "hunter2", "TEST_VAULT_PASSWORD_FILE": "hunter2"]),
      ("", ["TEST_OPTIONS_SASL_PASSWORD": "hunter2", "TEST_OPTIONS_SASL_PASSWORD_FILE": "hunter2"]),
    ] as [(String, [String: String])]) func showsNoMisplacedSecret(file: String, environment: [String: String])
  {
    let faults = vaultSchema.faults(Vault.self, file: limits + file, environment: environment)
    #expect(!faults.isEmpty)
    #expect(!faults.joined().contains("hunter2"))
  }

  @Test func explainsWhatIsWrongWithAFile() throws {
    let unusable = [
      directory.write("empty", "\n"), directory.write("binary", [0xff]),
      directory.write("large", String(repeating: "x", count: 70_000)),
    ]
    let texts = try ([directory.path, directory.path + "/none"] + unusable).map { path in
      let error = #expect(throws: ConfigurationError.self) { try load("vault: { password: \(path) }") }
      return try #require(error?.faults.first?.message)
    }
    #expect(
      texts == [
        "the file that it names cannot be read: Is a directory",
        "the file that it names cannot be read: No such file or directory", "the file that it names is empty",
        "the file that it names is not UTF-8", "the file that it names cannot be read: File too large",
      ])
    #expect(
      vaultSchema.faults(Vault.self, file: limits + "vault: { certificate: no.pem }") == [
        "t.yaml:2: vault.certificate: no.pem cannot be read: No such file or directory"
      ])
  }

  @Test func warnsOfSecretsThatEverybodyCanRead() throws {
    let open = directory.write("open", "secret", mode: 0o644)
    let closed = directory.write("closed", "secret", mode: 0o640)
    let file = "vault: { certificate: open, private-key: open, password: open }\noptions: { a.password: open }"
    #expect(
      try load(file).warnings.map(\.message) == [
        "everybody can read \(open)", "everybody can read the file that it names",
        "everybody can read the file that it names",
      ])
    #expect(try load("vault: { certificate: \(open), private-key: \(closed), password: \(closed) }").warnings == [])
  }
}
