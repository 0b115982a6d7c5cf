import AccountEvents
import AccountServices
import AccountStore
import Configuration
import ConsumerSupport
import EventLoop
import Kafka
import Telemetry
import TestSupport
import Testing

/// What an operator declares, and what cannot be meant.
@Loop @Suite struct ErasureSettingsTests {
  private let directory = TemporaryDirectory()
  private let schema = ConfigurationSchema(prefix: "SIWA", defaultFile: "/nowhere").adding(
    "siwa-data-eraser", ErasureSettings.self)

  private nonisolated static let targets = """
    data-eraser:
      targets:
        shop:
          sqlite: shop.sqlite
          count: SELECT count(*) FROM user WHERE apple_sub = $1 AND apple_team = $2
          erase:
            - DELETE FROM purchase WHERE user IN (SELECT id FROM user WHERE apple_sub = $1)
            - DELETE FROM user WHERE apple_sub = $1 AND apple_team = $2
          find: SELECT count(*) FROM user WHERE apple_sub = $1
        newsletter: { url: "https://newsletter.example.com/erasures", secret: whsec }
        search: { topics: [search.users, search.orders], key: sub }
        invoices: { retain: "§ 147 AO", until: 2036-12-31 }
    """
  private nonisolated static let teams = """
    teams:
      A1B2C3D4E5: { erase: { consent-revoked: [newsletter] } }
      F1B2C3D4E5: { erase: { consent-revoked: [], account-delete: [search, shop] } }
    """

  private func load(_ text: String) throws -> ErasureSettings {
    _ = directory.write("whsec", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    return try schema.load(ErasureSettings.self, from: ConfigurationSources(file: directory.write("siwa.yaml", text)))
      .value
  }

  /// Here one that takes connections and says nothing: what it is asked at the start is asked beside everything else.
  @Test func aTargetThatHangsHoldsUpNoStart() async throws {
    let silent = try ListeningSocket(.loopback(port: 0))
    _ = directory.write("silent", "host=127.0.0.1 port=\(silent.address.port) user=a dbname=a sslmode=disable")
    let settings = try load(
      """
      teams: { A1B2C3D4E5: { erase: { consent-revoked: [crm] } } }
      data-eraser:
        targets:
          crm: { postgresql: silent, count: SELECT $1, erase: [SELECT $1], find: SELECT $1 }
      """)
    let (captured, store) = (CapturedLog(), try await StoreOfTests().open())
    let surroundings = ConsumerSurroundings(
      store: store, log: MemoryLog(), kafka: try KafkaConfiguration(properties: []), concurrency: 8, teams: [:],
      registry: MetricsRegistry(), logger: captured.logger())
    _ = try await DataEraserProgram.makeConsumer(settings, in: surroundings)
    #expect(!captured.lines.contains { $0.contains("could not be used now") }, "nobody has waited for its answer")
    silent.close()
    await store.close()
  }

  @Test func readsTargetsInTheirOrderAndEachTeamsPolicy() throws {
    let settings = try load(Self.targets + "\n" + Self.teams)
    #expect(settings.targets.map(\.name) == ["shop", "newsletter", "search", "invoices"])
    guard case .sqlite(let path, let statements, foreignKeys: false) = settings.targets[0].target else {
      Issue.record("the first target is another kind")
      return
    }
    #expect(path == directory.path + "/shop.sqlite" && statements.erase.count == 2)
    let first = try #require(settings.policies.first { $0.key.text == "A1B2C3D4E5" }?.value)
    #expect(first.consentRevoked == ["newsletter"])
    #expect(first.accountDelete == ["shop", "newsletter", "search", "invoices", "account-store"])
    let second = try #require(settings.policies.first { $0.key.text == "F1B2C3D4E5" }?.value)
    #expect(second.consentRevoked == [])
    #expect(second.accountDelete == ["shop", "search", "account-store"], "in the order of the declaration")
  }

  @Test func appsThatShareNoConsentKeepWhatTheStoreHoldsOfTheOthers() throws {
    let teams = Self.teams.replacing(
      "{ erase: { consent-revoked: [newsletter] } }",
      with:
        "{ groups: [[com.example.app, com.example.web], [com.example.shop]], erase: { consent-revoked: [newsletter] } }"
    )
    let settings = try load(Self.targets + "\n" + teams)
    let team = try #require(TeamID("A1B2C3D4E5"))
    func sharing(_ client: String, of team: TeamID) throws -> [String]? {
      settings.groups.clients(of: team, sharing: try #require(ClientID(client)))?.map(\.text).sorted()
    }
    #expect(try sharing("com.example.web", of: team) == ["com.example.app", "com.example.web"])
    #expect(try sharing("com.example.shop", of: team) == ["com.example.shop"])
    #expect(try sharing("com.example.new", of: team) == ["com.example.new"])
    #expect(try sharing("com.example.web", of: try #require(TeamID("F1B2C3D4E5"))) == nil)
    for (old, new, fault) in [
      ("[newsletter]", "[newsletter, account-store]", "teams.A1B2C3D4E5.erase.consent-revoked: account-store holds"),
      ("[com.example.shop]", "[com.example.app]", "com.example.app stands there twice"),
      ("[com.example.shop]", "[]", "teams.A1B2C3D4E5.groups: expected a list of"),
    ] {
      let error = #expect(throws: ConfigurationError.self) {
        try load(Self.targets + "\n" + teams.replacing(old, with: new))
      }
      #expect("\(try #require(error))".contains(fault), "\(error.map { "\($0)" } ?? "")")
    }
  }

  @Test(arguments: [
    ("search: {", "search: { retain: x,", "data-eraser.targets.search: expected exactly one of"),
    ("find: SELECT", "#", "data-eraser.targets.shop.find: missing; SQL with $1 for the subject"),
    ("key: sub", "key: email", "expected sub or team/sub, found"), ("2036-12-31", "2036-02-30", "expected a date"),
    (", until: 2036-12-31", "", "data-eraser.targets.invoices.until: missing"),
    ("secret: whsec }", "secret: shop.sqlite }", "the file that it names cannot be read"),
    ("https://newsletter", "http://newsletter", "expected an https URL"),
    ("[newsletter]", "[newsletters]", "newsletters is none of the targets: shop, newsletter, search, invoices"),
    ("[newsletter]", "[shop, shop]", "a target stands there twice"),
    ("{ consent-revoked: [newsletter] }", "{}", "teams.A1B2C3D4E5.erase.consent-revoked: missing; expected a list"),
    ("    newsletter:", "    News Letter:", "expected a name of 1 to 40 small letters"),
  ])
  func namesWhatCannotBeMeant(_ old: String, _ new: String, _ words: String) throws {
    let text = Self.targets + "\n" + Self.teams
    let range = try #require(text.firstRange(of: old))
    var changed = text
    changed.replaceSubrange(range, with: new)
    let error = #expect(throws: ConfigurationError.self) { try load(changed) }
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
  }

  @Test func whatAWithdrawnConsentErasesBesidesIsWarnedOf() throws {
    func warnings(_ consentRevoked: String, _ groups: String = "") throws -> [String] {
      _ = directory.write("whsec", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
      let policy = "{ \(groups)erase: { consent-revoked: \(consentRevoked) } }"
      let text =
        Self.targets + "\n" + Self.teams.replacing("{ erase: { consent-revoked: [newsletter] } }", with: policy)
      return try schema.load(
        ErasureSettings.self, from: ConfigurationSources(file: directory.write("siwa.yaml", text))
      ).warnings.map { "\($0.setting ?? ""): \($0.message)" }
    }
    #expect(try warnings("[newsletter]") == [], "account-delete ends with the account")
    let said = try warnings("[newsletter, search]")
    #expect(
      said == [
        "teams.A1B2C3D4E5.erase.consent-revoked: search has topics: "
          + "a tombstone that is late takes away what was written since, too"
      ])
    let groups = "groups: [[com.example.app], [com.example.shop]], "
    #expect(try warnings("[]", groups) == [])
    #expect(
      try warnings("[invoices, shop, newsletter]", groups) == [
        "teams.A1B2C3D4E5.erase.consent-revoked: targets know no apps: "
          + "what these have of the person's other groups goes, too: shop, newsletter"
      ])
  }

  /// What was asked before a deletion is void: the deletion has to cover it.
  @Test func aDeletionErasesWhatAWithdrawnConsentDoes() throws {
    func load(_ consentRevoked: String) throws -> ErasureSettings {
      try self.load(
        Self.targets + "\n" + Self.teams.replacing("consent-revoked: [], account", with: "\(consentRevoked), account"))
    }
    let error = #expect(throws: ConfigurationError.self) { try load("consent-revoked: [shop, newsletter]") }
    let words = "erase.account-delete: newsletter is missing, which consent-revoked names: a deletion erases it, too"
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
    #expect(try load("consent-revoked: [shop, account-store]").policies.count == 2, "the store goes in any case")
  }

  @Test func wantsToBeToldWhatAWithdrawnConsentErases() throws {
    let error = #expect(throws: ConfigurationError.self) { try load(Self.targets) }
    #expect(error?.description.contains("teams") == true)
  }

  @Test func aDatabaseThatIsNotVerifiedIsWarnedOf() throws {
    _ = directory.write("connection", "host=db.example password=hidden")
    let targets = Self.targets.replacing("sqlite: shop.sqlite", with: "postgresql: connection")
    let file = directory.write("siwa.yaml", targets + "\n" + Self.teams)
    _ = directory.write("whsec", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    let warnings = try schema.load(ErasureSettings.self, from: ConfigurationSources(file: file)).warnings
    #expect(warnings.map(\.setting) == ["data-eraser.targets.shop.postgresql"])
    #expect(!"\(warnings)".contains("hidden"))
  }
}
