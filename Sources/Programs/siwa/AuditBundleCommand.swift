import AccountEvents
import AccountServices
import Configuration
import EventLoop
import TransparencyLog

/// `siwa audit bundle`: all of the log in one file.
struct AuditBundleCommand: Command {
  static let name = "audit bundle"
  static let summary = "Writes all of an audit log into one file that verifies offline."
  static let details = """
    A POSIX archive (tar) of the checkpoint, the entries and tiles of its tree, the rotations of the log's key, the keys of
    the witnesses, and Apple's public keys as apple.signing-keys.v1 has them; docs/audit.md has the format. It is verified
    before it appears: 'siwa audit verify --log FILE' and docs/verify.py say the same of it, without a network. The same
    log at the same checkpoint makes the same bytes.

    Exit codes: 0 written, 1 the log does not hold, and nothing is written, 2 the command line or the configuration makes
    no sense, 3 the log or Kafka cannot be read, or the file not be written.

    """
  static let examples = [
    CommandExample("siwa audit bundle -o audit.tar", "For an auditor, with /etc/siwa/siwa.yaml."),
    CommandExample(
      "siwa audit bundle --log https://audit.example.com/siwa --vkey VKEY --without-apple-keys -o audit.tar",
      "By somebody who has no access to Kafka."),
  ]

  private let file: String
  private let isWithoutAppleKeys: Bool
  private let access: AuditAccess

  init(reading arguments: inout CommandArguments) {
    file = arguments.read("-o", "FILE", .path, "The file; one that is there is replaced.")
    isWithoutAppleKeys = arguments.flag("--without-apple-keys", "Asks no Kafka for Apple's public keys.")
    access = AuditAccess(reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.open { log, known in
      let appleKeys = isWithoutAppleKeys ? nil : try await RecordAccess(access.options).appleKeys()
      let attachments = AuditBundle.Attachments(
        keys: try await known.source.read(LogPath.keys, limit: KeyHistory.maximumByteCount),
        witnesses: known.trust.policy.witnesses, appleKeys: appleKeys)
      try await log.writeBundle(attachments, trusting: known.trust, to: file)
      Terminal.say("\(file): \(log.size) entries, root \(log.checkpoint.checkpoint.root)")
      return .success
    }
  }
}
