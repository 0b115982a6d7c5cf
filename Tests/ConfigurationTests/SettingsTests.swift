import Configuration
import EventLoop
import TestSupport
import Testing

@Suite struct SettingsTests {
  private let directory = TemporaryDirectory()

  private func load(
    _ file: String, environment: [String: String] = [:], overrides: [String] = []
  ) throws -> Example {
    let path = directory.write("t.yaml", file)
    let sources = ConfigurationSources(file: path, environment: environment, overrides: overrides)
    return try schema.load(Example.self, from: sources).value
  }

  @Test func readsEveryTypeFromTheFile() throws {
    let example = try load(
      """
      # a comment
      main:
        name: "yes"
        listen: "[::1]:8443"
        workers: 64
        fast: true
        deadline: 250ms
        max-size: 1MiB
        level: high
        address: https://example.com:8443/a?b=c
        data: sub/dir
        tags: [no, 0x10, "a, b"]
      """)
    #expect(example.name == "yes")
    #expect(example.listen.description == "[::1]:8443")
    #expect(example.workers == 64)
    #expect(example.isFast)
    #expect(example.deadline == .milliseconds(250))
    #expect(example.size == 1 << 20)
    #expect(example.level == .high)
    #expect(example.address == "https://example.com:8443/a?b=c")
    #expect(example.data == directory.path + "/sub/dir")
    #expect(example.tags == ["no", "0x10", "a, b"])
  }

  @Test func fallsBackToTheDefaults() throws {
    let example = try load("main: { name: x }")
    #expect(example.listen.description == "127.0.0.1:80")
    #expect(example.workers == 4)
    #expect(!example.isFast)
    #expect(example.deadline == .seconds(5))
    #expect(example.size == 65_536)
    #expect(example.level == .low)
    #expect(example.address == nil)
    #expect(example.data == "data")
    #expect(example.tags == [])
  }

  @Test func readsEveryTypeFromVariables() throws {
    let environment = [
      "TEST_MAIN_NAME": "n", "TEST_MAIN_LISTEN": "0.0.0.0:1", "TEST_MAIN_WORKERS": "1", "TEST_MAIN_FAST": "true",
      "TEST_MAIN_DEADLINE": "1m", "TEST_MAIN_MAX_SIZE": "64KiB", "TEST_MAIN_LEVEL": "high",
      "TEST_MAIN_ADDRESS": "https://[::1]:80/", "TEST_MAIN_DATA": "relative", "TEST_MAIN_TAGS": "a, b,c",
      "UNRELATED": "x",
    ]
    let example = try load("", environment: environment)
    let overrides = [
      "main.name=n", "main.listen=0.0.0.0:1", "main.workers=1", "main.fast=true", "main.deadline=60s",
      "main.max-size=65536B", "main.level=high", "main.address=https://[::1]:80/", "main.data=relative",
      "main.tags=a,b,c",
    ]
    #expect(example == (try load("", overrides: overrides)))
    #expect(example.name == "n")
    #expect(example.deadline == .seconds(60))
    #expect(example.data == "relative")
    #expect(example.tags == ["a", "b", "c"])
  }

  @Test func prefersCommandLineToVariableToFileToDefault() throws {
    let file = "main: { name: file, workers: 2, level: high }"
    let environment = ["TEST_MAIN_NAME": "variable", "TEST_MAIN_WORKERS": "3"]
    let example = try load(file, environment: environment, overrides: ["main.name=first", "main.name=option=last"])
    #expect(example.name == "option=last")
    #expect(example.workers == 3)
    #expect(example.level == .high)
    #expect(example.size == 65_536)
  }

  @Test func ignoresWhatAnotherProgramUses() throws {
    let both = schema.adding("vault", Vault.self)
    let path = directory.write("t.yaml", "main: { name: x }\nvault: { certificate: /nonexistent }\n")
    #expect(try both.load(Example.self, from: ConfigurationSources(file: path)).value.name == "x")
  }

  @Test func findsTheFileByOptionThenVariableThenDefault() throws {
    let (one, two) = (directory.write("1", "main: { name: one }"), directory.write("2", "main: { name: two }"))
    let byDefault = ConfigurationSchema(prefix: "TEST", defaultFile: one).adding("example", Example.self)
    #expect(try byDefault.load(Example.self, from: ConfigurationSources()).value.name == "one")
    let environment = ["TEST_CONFIG": two]
    #expect(try byDefault.load(Example.self, from: ConfigurationSources(environment: environment)).value.name == "two")
    let both = ConfigurationSources(file: one, environment: environment)
    #expect(try byDefault.load(Example.self, from: both).value.name == "one")
  }

  @Test func startsWithoutADefaultFileButNotWithoutANamedOne() throws {
    let environment = ["TEST_MAIN_NAME": "x"]
    #expect(try schema.load(Example.self, from: ConfigurationSources(environment: environment)).value.name == "x")
    let named = ConfigurationSources(file: "/nonexistent/a.yaml", environment: environment)
    let byVariable = ConfigurationSources(environment: ["TEST_CONFIG": "/tmp"])
    for (sources, fault) in [
      (named, "--config: /nonexistent/a.yaml cannot be read: No such file or directory"),
      (byVariable, "TEST_CONFIG: /tmp cannot be read: Is a directory"),
    ] {
      let error = #expect(throws: ConfigurationError.self) { try schema.load(Example.self, from: sources) }
      #expect(error?.description == fault)
    }
  }

  @Test(arguments: [
    "SIWA_INGRESS_SERVICE_HOST": "10.0.0.1", "SIWA_INGRESS_SERVICE_PORT": "443",
    "SIWA_INGRESS_SERVICE_PORT_HTTPS": "443", "SIWA_INGRESS_PORT": "tcp://10.0.0.1:443",
    "SIWA_INGRESS_PORT_443_TCP": "tcp://10.0.0.1:443", "SIWA_INGRESS_PORT_443_TCP_PROTO": "tcp",
    "SIWA_INGRESS_PORT_443_TCP_PORT": "443", "SIWA_INGRESS_PORT_443_TCP_ADDR": "10.0.0.1",
    "SIWA_OPTIONS_SERVICE_HOST": "10.0.0.1",
  ]) func ignoresTheVariablesThatKubernetesMakesForAService(name: String, value: String) throws {
    let schema = ConfigurationSchema(prefix: "SIWA", defaultFile: "/nonexistent/t.yaml").adding("vault", Vault.self)
    let environment = [name: value, "SIWA_LIMITS_A_MOST": "1"]
    let vault = try schema.load(Vault.self, from: ConfigurationSources(environment: environment)).value
    #expect(vault.options == Properties())
  }

  @Test func knowsTheProcessEnvironment() {
    #expect(ConfigurationSources.processEnvironment["PATH"]?.isEmpty == false)
  }
}
