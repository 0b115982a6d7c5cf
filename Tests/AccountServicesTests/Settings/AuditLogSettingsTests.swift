import AccountServices
import Configuration
import TestSupport
import Testing
import TransparencyLog

/// How many witnesses have to have cosigned what readers may go by.
@Suite struct AuditLogSettingsTests {
  private let directory = TemporaryDirectory()

  private func load(quorum: String?, witnesses: Int) throws -> AuditLogSettings {
    var environment = [
      "SIWA_AUDIT_LOG_ORIGIN": "example.com/audit",
      "SIWA_AUDIT_LOG_PRIVATE_KEY": try NoteSigner.generate(name: "example.com/audit").text,
    ]
    environment["SIWA_AUDIT_LOG_QUORUM"] = quorum
    for number in 0..<witnesses {
      let key = try Cosigner(name: "witness.example/\(number)", seed: [UInt8](repeating: UInt8(number), count: 32)).key
      environment["SIWA_AUDIT_LOG_WITNESSES_W\(number)_URL"] = "https://witness.example/"
      environment["SIWA_AUDIT_LOG_WITNESSES_W\(number)_KEY"] = key.text
    }
    let sources = ConfigurationSources(file: directory.write("t.yaml", ""), environment: environment)
    return try ConfigurationSchema.siwa.load(AuditLogSettings.self, from: sources).value
  }

  @Test func withoutAQuorumAllWitnessesHaveToHaveCosigned() throws {
    for count in [0, 1, 3] { #expect(try load(quorum: nil, witnesses: count).quorum == count) }
    #expect(try load(quorum: "2", witnesses: 3).quorum == 2)
  }

  @Test(arguments: [0, 2]) func aQuorumThatNeverComesAboutIsRefused(witnesses: Int) {
    let error = #expect(throws: ConfigurationError.self) { _ = try load(quorum: "3", witnesses: witnesses) }
    let words = "SIWA_AUDIT_LOG_QUORUM: expected at most the number of audit-log.witnesses, \(witnesses)"
    #expect(error?.description.contains(words) == true)
  }
}
