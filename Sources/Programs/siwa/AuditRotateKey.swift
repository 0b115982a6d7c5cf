import AccountServices
import Configuration
import EventLoop
import Glibc
import TransparencyLog

/// `siwa audit rotate-key`: another key signs the audit log's checkpoints from here on.
struct AuditRotateKey: Command {
  static let name = "audit rotate-key"
  static let summary = "Has the old key of the audit log sign for a new one, which signs from here on."
  static let details = """
    Stop siwa-audit-log before, and let audit-log.private-key name the new file afterwards. The rotation, signed by both
    keys, stands in the log's file 'keys', which is published with it: whoever trusts the first key goes on to trust the
    log, and what the old key signs for a larger tree than today's counts for nothing, whoever has it. Receipts of before
    stay good; who checks a later one needs the file 'keys', too.

    Exit codes: 0 rotated, 1 the log or a key is not as it has to be, 2 the command line or the configuration makes no
    sense, 3 siwa-audit-log is still running.

    """
  static let examples = [
    CommandExample(
      "siwa audit rotate-key --old /etc/siwa/audit-key --new /etc/siwa/audit-key-2027",
      "After 'siwa audit create-key' has made the second file, for the same origin.")
  ]

  private let old: Secret
  private let new: Secret
  private let directory: String?
  private let first: VerifierKey?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    old = arguments.read("--old", "FILE", .secret, "The file of the key that signs now.")
    new = arguments.read("--new", "FILE", .secret, "The file of the key that is to sign.")
    directory = arguments.readIfPresent("--log", "DIRECTORY", .path, "The log's directory; otherwise audit.log says.")
    first = arguments.readIfPresent("--vkey", "VKEY", .logKey, "The log's first key; otherwise audit.key says.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    do {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      let settings = try ConfigurationSchema.siwa.load(AuditSettings.self, from: sources).value
      let (old, new) = (try NoteSigner(old.revealed), try NoteSigner(new.revealed))
      guard let first = first ?? settings.key else {
        Terminal.complain("siwa: --vkey VKEY: missing, and so is audit.key")
        return .misuse
      }
      let directory = directory ?? settings.log
      guard unsafe access("\(directory)/\(LogPath.checkpoint)", F_OK) == 0 else {
        Terminal.complain("siwa: \(directory): there is no log that has a checkpoint")
        return .failure
      }
      let writer = try LogWriter(opening: directory, origin: first.name)
      let file = try writer.directory.contents(of: LogPath.keys, limit: KeyHistory.maximumByteCount)
      let history = try file.map { try KeyHistory($0, of: first.name, from: first) } ?? KeyHistory()
      guard (history.rotations.last?.key ?? first) == old.key else {
        Terminal.complain("siwa: --old: not the key that signs now, which is \(history.rotations.last?.key ?? first)")
        return .failure
      }
      let rotation = try await KeyRotation.sign(writer.flushed, from: old, to: new)
      try writer.publish(try history.appending(rotation))
      Terminal.say("\(new.key) signs from \(rotation.head.size) entries on")
      return .success
    } catch {
      return ExitCode(complainingOfLog: error)
    }
  }
}
