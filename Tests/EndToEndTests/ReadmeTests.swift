import Cryptography
import EventLoop
import Foundation
import TestSupport
import Testing

/// What README has a reader type, in a folder instead of the machine's own.
@Loop @Suite struct ReadmeTests {
  private let machine = TemporaryDirectory()

  private func here(_ text: String) -> String {
    text.replacing("/etc/siwa", with: machine.path + "/etc").replacing("/var/lib/siwa", with: machine.path + "/var")
  }

  /// The commands for siwa's user, without what is explained behind a #.
  private func commands() throws -> [[String]] {
    let beginning = "   sudo -u siwa siwa "
    return String(decoding: try Repository.bytes("README.md"), as: UTF8.self).split(separator: "\n")
      .filter { $0.hasPrefix(beginning) }
      .map { line in line.dropFirst(beginning.count).prefix { $0 != "#" }.split(separator: " ").map { here(String($0)) }
      }
  }

  /// The example's settings, with the origin that README gives the log, and the files that only the reader has.
  private func configure(origin: String) throws -> String {
    for folder in ["/etc/tls", "/var"] {
      try FileManager.default.createDirectory(atPath: machine.path + folder, withIntermediateDirectories: true)
    }
    let files = [
      "fullchain.pem": SelfSignedCertificate.sample.certificatePEM,
      "key.pem": SelfSignedCertificate.sample.privateKeyPEM,
      "AuthKey_ABC123DEFG.p8": try P256PrivateKey().pem(),
      "newsletter-secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      "email-relay-token": "a-token-of-more-than-thirty-two-characters",
    ]
    for (name, text) in files { _ = machine.write("etc/tls/" + name, text) }
    let example = String(decoding: try Repository.bytes("deploy/siwa.yaml"), as: UTF8.self)
    return machine.write(
      "etc/siwa.yaml", here(example).replacing("  origin: example.com/siwa-audit\n", with: "  origin: \(origin)\n"))
  }

  private func siwa(_ words: [String], _ file: String) async throws -> (
    end: RunningProgram.End, output: String, errors: String
  ) {
    try await RunningProgram.run(
      "siwa", words, ["SIWA_CONFIG": file, "SIWA_AUDIT_LOG_DIRECTORY": here("/var/lib/siwa/audit-log")]
    ) { program in
      try await program.outcome()
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func whoFollowsItHasAStoreAndALogAndNoFaults() async throws {
    let commands = try commands()
    #expect(
      commands.map { $0.prefix(2).joined(separator: " ") } == [
        "store create-key", "store begin", "audit create-key", "audit begin",
      ])
    let file = try configure(origin: try #require(commands.first { $0.starts(with: ["audit", "create-key"]) }?[2]))
    for words in commands {
      let outcome = try await siwa(words, file)
      #expect(outcome.end == .exit(0), "\(words): \(outcome)")
    }
    let check = try await siwa(["config", "check"], file)
    #expect(check.end == .exit(0) && check.output.hasSuffix("\nno faults\n"), "\(check)")
  }
}
