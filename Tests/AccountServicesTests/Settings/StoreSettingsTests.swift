import AccountServices
import AccountStore
import Configuration
import TestSupport
import Testing

/// `store`: exactly one database, and a key that fits.
@Suite struct StoreSettingsTests {
  private let files = TemporaryDirectory()

  private func load(_ variables: [String: String]) throws(ConfigurationError) -> StoreSettings {
    let sources = ConfigurationSources(file: files.write("siwa.yaml", ""), environment: variables, overrides: [])
    return try ConfigurationSchema.siwa.load(StoreSettings.self, from: sources).value
  }

  private func faults(_ variables: [String: String]) -> [String] {
    do throws(ConfigurationError) {
      _ = try load(variables)
      return []
    } catch {
      return error.faults.map { "\($0.setting ?? ""): \($0.message)" }
    }
  }

  private var key: String { files.write("master-key", String(repeating: "A", count: 43) + "\n") }

  @Test func oneDatabaseAndAKeyAreEnough() throws {
    let sqlite = try load(["SIWA_STORE_SQLITE": "/var/store.sqlite", "SIWA_STORE_MASTER_KEY": key])
    guard case .sqlite("/var/store.sqlite") = sqlite.database else {
      Issue.record("\(sqlite)")
      return
    }
    let postgresql = try load(["SIWA_STORE_POSTGRESQL": "host=db password=hidden", "SIWA_STORE_MASTER_KEY": key])
    guard case .postgresql(let text, connections: 8) = postgresql.database else {
      Issue.record("\(postgresql)")
      return
    }
    #expect(text.revealed == "host=db password=hidden" && !"\(postgresql)".contains("hidden"))
  }

  @Test func exactlyOneDatabaseIsExpected() {
    #expect(
      faults(["SIWA_STORE_MASTER_KEY": key])
        == ["store.sqlite: missing; expected a path here, or a connection string as store.postgresql"])
    #expect(
      faults(["SIWA_STORE_SQLITE": "/a", "SIWA_STORE_POSTGRESQL": "host=b", "SIWA_STORE_MASTER_KEY": key])
        == ["store.postgresql: expected only one of this and store.sqlite, found both"])
  }

  @Test func aKeyThatCannotBeUsedIsAFaultOfItsSetting() {
    let open = files.write("open-key", String(repeating: "A", count: 43) + "\n", mode: 0o644)
    #expect(
      faults(["SIWA_STORE_SQLITE": "/a", "SIWA_STORE_MASTER_KEY": open])
        == [
          "store.master-key: \(open) belongs to another user, or others can read it; it must be this user's own, with mode 0600"
        ])
    let none = files.write("no-key", "AAAA")
    #expect(
      faults(["SIWA_STORE_SQLITE": "/a", "SIWA_STORE_MASTER_KEY": none])
        == ["store.master-key: \(none) holds no key; `siwa store create-key` makes one"])
    #expect(faults(["SIWA_STORE_SQLITE": "/a"]).count == 1)
    #expect(faults(["SIWA_STORE_SQLITE": "/a", "SIWA_STORE_MASTER_KEY": files.path + "/missing"]).count == 1)
  }

  @Test(arguments: [("host=db password=hidden", 1), ("host=db sslmode=verify-full", 0), ("host=/run/postgresql", 0)])
  func aServerThatIsNotVerifiedIsWarnedOf(connection: String, count: Int) throws {
    let sources = ConfigurationSources(
      file: files.write("siwa.yaml", ""),
      environment: ["SIWA_STORE_POSTGRESQL": connection, "SIWA_STORE_MASTER_KEY": key], overrides: [])
    let warnings = try ConfigurationSchema.siwa.load(StoreSettings.self, from: sources).warnings
    #expect(warnings.count == count && warnings.allSatisfy { $0.setting == "store.postgresql" })
    #expect(!"\(warnings)".contains("hidden"))
  }
}
