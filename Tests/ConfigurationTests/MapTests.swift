import Configuration
import TestSupport
import Testing

@Suite struct MapTests {
  private let directory = TemporaryDirectory()

  private func load(
    _ file: String, environment: [String: String] = [:], overrides: [String] = []
  ) throws -> Vault {
    let path = directory.write("t.yaml", file)
    let sources = ConfigurationSources(file: path, environment: environment, overrides: overrides)
    return try vaultSchema.load(Vault.self, from: sources).value
  }

  @Test func readsAGroupForEachKey() throws {
    let vault = try load(
      "limits:\n  B: { most: 2 }\n  A: { most: 1 }\n",
      environment: ["TEST_LIMITS_D_MOST": "4", "TEST_LIMITS_B_MOST": "7"],
      overrides: ["limits.C.most=3", "limits.A.most=8"])
    #expect(vault.limits.map(\.key) == ["B", "A", "C", "D"])
    #expect(vault.limits.map(\.value) == [7, 8, 3, 4])
  }

  private static let missing = "limits: missing; expected settings for a room (capital letters)"
  private static let most = "expected a whole number from 0 to 9"

  @Test(arguments: [
    ("", [missing]), ("limits:", [missing]), ("limits: {}", [missing]),
    ("limits: x", ["t.yaml:1: limits: expected a group of settings, found \"x\""]),
    (
      "limits: { A: 3 }",
      [
        "t.yaml:1: limits.A: expected a group of settings, found \"3\"",
        "limits.A.most: missing; \(most); set it in t.yaml or as TEST_LIMITS_A_MOST",
      ]
    ),
    ("limits: { a: { most: 3 } }", ["t.yaml:1: limits: expected a room (capital letters) as a key, found \"a\""]),
    ("limits: { A: { most: x } }", ["t.yaml:1: limits.A.most: \(most), found \"x\""]),
    ("limits: { A: { most: 1, least: 1 } }", ["t.yaml:1: limits.A.least: unknown setting"]),
    (
      "limits: { A: { msot: 1 } }",
      [
        "t.yaml:1: limits.A.msot: unknown setting; did you mean limits.A.most?",
        "limits.A.most: missing; \(most); set it in t.yaml or as TEST_LIMITS_A_MOST",
      ]
    ),
  ]) func refusesFaultyGroups(file: String, faults: [String]) {
    #expect(vaultSchema.faults(Vault.self, file: file) == faults)
  }

  @Test func passesPropertiesThroughUnderTheirOwnNames() throws {
    let vault = try load(
      "limits: { A: { most: 1 } }\noptions: { z.y.x: 1, a.b: no, enable_c: \"~\", ca: \"a\\nb\" }",
      environment: ["TEST_OPTIONS_BOOTSTRAP_SERVERS": "h:1,h:2", "TEST_OPTIONS_A_B": "yes"],
      overrides: ["options.z.y.x=2", "options.client.id=me"])
    #expect(
      vault.options.all.map(\.description) == [
        "z.y.x=2", "a.b=yes", "enable_c=~", "ca=a\nb", "bootstrap.servers=h:1,h:2", "client.id=me",
      ])
  }

  @Test(arguments: [
    ("{ a: b, bad: c }", "t.yaml:2: options.bad: no such property"),
    ("{ a: }", "t.yaml:2: options.a: expected text, found nothing"),
    ("{ a: { b: c } }", "t.yaml:2: options.a: expected text, found a group of settings"),
    ("{ a: [b] }", "t.yaml:2: options.a: expected text, found a list"),
    ("[a]", "t.yaml:2: options: expected a group of settings, found a list"),
  ]) func refusesPropertiesThatAreNotText(options: String, fault: String) {
    let file = "limits: { A: { most: 1 } }\noptions: \(options)"
    #expect(vaultSchema.faults(Vault.self, file: file) == [fault])
  }

  @Test func namesThePropertiesThatAreMissing() {
    struct Client: Configurable {
      init(reading settings: inout Settings) {
        _ = settings.readProperties(
          "client", required: ["a.b", "c"], isSecret: { _ in false }, fault: { _, _ in nil }, "Somebody else's.")
      }
    }
    let schema = ConfigurationSchema(prefix: "TEST", defaultFile: "/nonexistent/test.yaml").adding("c", Client.self)
    #expect(
      schema.faults(Client.self, file: "client: { c: }") == [
        "t.yaml:1: client.c: expected text, found nothing",
        "client.a.b: missing; set it in t.yaml or as TEST_CLIENT_A_B",
      ])
  }

  private func house(
    _ file: String, environment: [String: String] = [:], overrides: [String] = []
  ) throws -> [String] {
    let path = directory.write("t.yaml", file)
    let sources = ConfigurationSources(file: path, environment: environment, overrides: overrides)
    let house = try houseSchema.load(House.self, from: sources).value
    return house.doors.map { "\($0.key) \($0.value.width) \($0.value.secret?.revealed ?? "-")" }
  }

  /// The names of variables are in capitals, whatever the keys are.
  @Test func aVariableSetsWhatItIsTheNameFor() throws {
    let secret = directory.write("secret", "hunter2\n")
    let file = "doors: { front: { width: 2 }, back-yard: }"
    #expect(try house(file) == ["front 2 -", "back-yard 1 -"])
    #expect(
      try house(file, environment: ["TEST_DOORS_FRONT_PASS_WORD": "a", "TEST_DOORS_BACK_YARD_PASS_WORD_FILE": secret])
        == ["front 2 a", "back-yard 1 hunter2"])
    #expect(
      try house(
        file, environment: ["TEST_DOORS_SIDE_WIDTH": "3", "TEST_DOORS_FRONT_WIDTH": "4"],
        overrides: ["doors.side.width=5", "doors.side.pass-word=\(secret)"])
        == ["front 4 -", "back-yard 1 -", "side 5 hunter2"])
    #expect(
      try house("", environment: ["TEST_DOORS_OLD_GATE_PASS_WORD": "a", "TEST_DOORS_OLD_GATE_WIDTH": "3"])
        == ["old-gate 3 a"], "no file says how the key is spelled")
    #expect(try house("", environment: ["TEST_DOORS_GATE_PASS_WORD_FILE": secret]) == ["gate 1 hunter2"])
  }

  @Test(arguments: [
    (["TEST_DOORS_FRONT_WIDHT": "3"], "TEST_DOORS_FRONT_WIDHT: unknown setting"),
    (
      ["TEST_DOORS_7_WIDTH": "3"],
      "TEST_DOORS_7_WIDTH: expected a door (small letters and hyphens) as a key, found \"7\""
    ),
    (["TEST_DOORS_FRONT_WIDTH_FILE": "3"], "TEST_DOORS_FRONT_WIDTH_FILE: unknown setting"),
  ]) func refusesVariablesOfNoKey(environment: [String: String], fault: String) {
    let faults = houseSchema.faults(House.self, file: "doors: { front: }", environment: environment)
    #expect(faults.count == 1 && faults.first?.contains(fault) == true, "\(faults)")
  }
}
