import AccountEvents
import AccountServices
import AppleID
import Configuration
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import TestSupport
import Testing

/// What a program reads that asks Apple for something in the name of the teams.
@Suite struct TokenSettingsTests {
  private struct AskingConfiguration: Configurable {
    let teams: TeamsSettings
    let apple: AppleTokenSettings
    let migration: AppleMigrationSettings

    init(reading settings: inout Settings) {
      teams = TeamsSettings(readingWithKeys: &settings)
      apple = AppleTokenSettings(reading: &settings)
      migration = AppleMigrationSettings(reading: &settings)
    }
  }

  private let directory = TemporaryDirectory()
  // Both programs in one schema: what both read must be declared in one way.
  private let schema = ConfigurationSchema.siwa.adding("asking", AskingConfiguration.self)

  private func sources(_ key: String, _ more: String = "", mode: Int = 0o600) throws -> ConfigurationSources {
    let path = directory.write("AuthKey_ABC123DEFG.p8", key)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    let text = """
      teams:
        A1B2C3D4E5:
          audiences: [com.example.app]
          key-id: ABC123DEFG
          private-key: AuthKey_ABC123DEFG.p8
      \(more)
      """
    return ConfigurationSources(file: directory.write("siwa.yaml", text))
  }

  private func faults(_ sources: ConfigurationSources) -> String {
    do {
      _ = try schema.load(AskingConfiguration.self, from: sources)
      return ""
    } catch {
      return error.description
    }
  }

  @Test func readsTheKeyOfEachTeam() async throws {
    let key = try P256PrivateKey()
    let loaded = try schema.load(AskingConfiguration.self, from: try sources(try key.pem()))
    #expect(loaded.warnings.isEmpty)
    let configuration = loaded.value
    let team = try #require(TeamID("A1B2C3D4E5"))
    let read = try #require(configuration.teams.keys[team])
    #expect(read.team == team && read.id.text == "ABC123DEFG")
    #expect(try read.privateKey.publicKey.x == key.publicKey.x)
    #expect(configuration.apple.tokenURL.text == "https://appleid.apple.com/auth/token")
    #expect(configuration.apple.revocationURL.text == "https://appleid.apple.com/auth/revoke")
    #expect(configuration.migration.migrationURL.text == "https://appleid.apple.com/auth/usermigrationinfo")
    #expect(configuration.migration.tokens == configuration.apple)
    #expect(configuration.apple.clientSecretLifetime == .seconds(3600))
    var shown = "\(configuration) \(schema.check(try sources(try key.pem()), programs: ["asking"]))"
    dump(configuration, to: &shown)
    for line in try key.pem().split(separator: "\n").dropFirst().dropLast() { #expect(!shown.contains(line)) }
    _ = await AppleTokenEndpoints(
      configuration.apple, teams: configuration.teams, concurrency: 1, userAgent: "siwa", now: { .now })
    // A team without a key: no request is made, and the app is named.
    let endpoint = await AppleMigrationEndpoint(
      configuration.migration, teams: configuration.teams, team: try #require(TeamID("Z9Y8X7W6V5")),
      client: try #require(ClientID("com.example.app")), concurrency: 1, userAgent: "siwa", now: { .now })
    await #expect {
      _ = try await endpoint.account(
        of: try #require(TransferSubject("t")), by: try #require(ClientID("com.example.app")))
    } throws: { error in
      (error as? AppleTokenError)?.code == .noKey && "\(error)".contains("com.example.app")
    }
  }

  @Test func refusesWhatIsNoKeyOfApples() throws {
    let words =
      "private-key: expected a private key as Apple gives it (.p8: PEM, P-256, not encrypted): malformed-key: "
    let rsa = try RSAPrivateKey(bitCount: 2048).pem()
    #expect(faults(try sources(rsa)).contains(words + "not a key on an elliptic curve"))
    #expect(faults(try sources("no key")).contains(words))
    #expect(faults(try sources("")).contains("the file that it names is empty"))
    let good = try P256PrivateKey().pem()
    #expect(faults(try sources(good, "apple: { client-secret-lifetime: 181d }")).contains("from 5m to 180d"))
    #expect(faults(try sources(good, "apple: { token: \"http://example.com/\" }")).contains("apple.token: expected an"))
    #expect(
      faults(try sources(good, "apple: { revoke: \"https://example.com/a#b\" }")).contains("apple.revoke: expected"))
    #expect(
      faults(try sources(good, "apple: { migration: \"http://example.com/\" }")).contains("apple.migration: expected"))
  }

  @Test func namesWhatIsMissing() {
    let text = "teams: { A1B2C3D4E5: { audiences: [com.example.app] } }"
    let faults = faults(ConfigurationSources(file: directory.write("siwa.yaml", text))).split(separator: "\n")
    #expect(faults.count == 2)
    #expect(faults.first?.hasPrefix("teams.A1B2C3D4E5.key-id: missing; expected a key ID") == true)
    #expect(faults.last?.hasPrefix("teams.A1B2C3D4E5.private-key: missing; expected the path of a file") == true)
  }

  @Test func warnsOfAKeyThatEverybodyCanRead() throws {
    let sources = try sources(try P256PrivateKey().pem(), mode: 0o644)
    let loaded = try schema.load(AskingConfiguration.self, from: sources)
    #expect(loaded.warnings.map(\.message) == ["everybody can read the file that it names"])
  }

  @Test func takesTheKeyFromAVariableToo() throws {
    let pem = try P256PrivateKey().pem()
    let sources = ConfigurationSources(
      file: directory.write("siwa.yaml", ""),
      environment: [
        "SIWA_TEAMS_A1B2C3D4E5_AUDIENCES": "com.example.app", "SIWA_TEAMS_A1B2C3D4E5_KEY_ID": "ABC123DEFG",
        "SIWA_TEAMS_A1B2C3D4E5_PRIVATE_KEY": pem, "SIWA_TEAMS_A1B2C3D4E5_KEY_ID_SECOND": "DEF456GHJK",
        "SIWA_TEAMS_A1B2C3D4E5_PRIVATE_KEY_SECOND_FILE": directory.write("second.p8", try P256PrivateKey().pem()),
      ])
    #expect(faults(sources) == "")
  }

  @Test func readsASecondKeyOfATeam() throws {
    let second = try P256PrivateKey()
    _ = directory.write("second.p8", try second.pem())
    func faults(_ lines: String...) throws -> String {
      self.faults(try sources(try P256PrivateKey().pem(), lines.map { "    \($0)" }.joined(separator: "\n")))
    }
    let both = ["key-id-second: DEF456GHIJ", "private-key-second: second.p8"]
    #expect(try faults(both[0], both[1]) == "")
    let loaded = try schema.load(
      AskingConfiguration.self,
      from: try sources(try P256PrivateKey().pem(), both.map { "    \($0)" }.joined(separator: "\n")))
    let team = try #require(TeamID("A1B2C3D4E5"))
    let read = try #require(loaded.value.teams.secondKeys[team])
    #expect(read.id.text == "DEF456GHIJ")
    #expect(try read.privateKey.publicKey.x == second.publicKey.x)
    #expect(try faults(both[0]).contains("key-id-second: goes with private-key-second, which is missing"))
    #expect(try faults(both[1]).contains("private-key-second: goes with key-id-second, which is missing"))
    #expect(try faults("key-id-second: ABC123DEFG", both[1]).contains("key-id-second: is the ID of the first key"))
    let short = try faults("key-id-second: short", both[1])
    #expect(short.contains("key-id-second: expected a key ID") && !short.contains("missing"), "\(short)")
    let absent = try faults(both[0], "private-key-second: no-such.p8")
    #expect(absent.contains("private-key-second: ") && !absent.contains("missing"), "\(absent)")
    let first = try P256PrivateKey().pem()
    _ = directory.write("same.p8", first)
    let same = self.faults(try sources(first, "    \(both[0])\n    private-key-second: same.p8"))
    #expect(same.contains("private-key-second: holds the first key"), "\(same)")
    _ = directory.write("second.p8", "no key")
    #expect(try faults(both[0], both[1]).contains("private-key-second: expected a private key as Apple gives it"))
  }
}
