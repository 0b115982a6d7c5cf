import AccountServices
import Configuration
import EventLoop
import Glibc
import TransparencyLog

/// `siwa audit rotate-key`: another key signs the audit log's checkpoints from here on.
struct AuditRotateKey: Command {
  static let name = "audit rotate-key"
  static let summary = "Replaces the key that signs the audit log's checkpoints: the old key signs for the new one."
  static let details = """
    Four steps: make the new key with 'siwa audit create-key', for the same ORIGIN; stop siwa-audit-log, also where it
    stands by; run this; let audit-log.private-key name the new file, and start siwa-audit-log again. audit.key stays what it
    is: the first key.

    Of those who verify the log nobody has to be told. The rotation stands in its file 'keys', signed by both keys, and is
    published with it: whoever trusts the first key comes to the new one by it. What the old key signs for a larger tree
    than today's counts for nothing from now on, so its file can be destroyed. Witnesses have to be given the new key: they
    know no rotations.

    A receipt that is made later is checked with the file 'keys' ('siwa audit check --keys'). One that was made before is
    proven by the witnesses that cosigned it, or by the log itself ('siwa audit check --log').

    A key that is no file, but behind audit-log.signer, is named by that program and the key that verifies what it signs:
    --old-signer and --old-vkey, or --new-signer and --new-vkey. A program that looks at what it signs has to let a note
    pass whose first line is key-rotation/v1.

    For verifiers that know no rotations there is audit-log.former-private-key: both keys then sign each checkpoint, until
    everybody has the new one.

    Exit codes: 0 rotated, 1 the log or a key is not as it has to be, 2 the command line or the configuration makes no
    sense, 3 siwa-audit-log is still running.

    """
  static let examples = [
    CommandExample(
      "siwa audit rotate-key --old /etc/siwa/tls/audit-key --new /etc/siwa/tls/audit-key-2027",
      "With /etc/siwa/siwa.yaml, which names the log and its first key."),
    CommandExample(
      "siwa audit rotate-key --old /etc/siwa/tls/audit-key --new-signer /usr/local/bin/sign,audit-2027 --new-vkey VKEY",
      "From a file to a key that never leaves its module."),
  ]

  private let old: RotatedKey
  private let new: RotatedKey
  private let directory: String?
  private let first: VerifierKey?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    old = RotatedKey(reading: &arguments, "--old", "the key that signs now: audit-log.private-key names it.")
    new = RotatedKey(
      reading: &arguments, "--new", "the key that is to sign: 'siwa audit create-key' has made it.")
    directory = arguments.readIfPresent("--log", "DIRECTORY", .path, "The log's directory; otherwise audit.log says.")
    first = arguments.readIfPresent("--vkey", "VKEY", .logKey, "The log's first key; otherwise audit.key says.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    do {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      let settings = try ConfigurationSchema.siwa.load(AuditSettings.self, from: sources).value
      let (old, new) = (try self.old.signer(), try self.new.signer())
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
      if writer.isUnpublished {
        // What the writer was killed before: the old key's last checkpoint.
        try writer.publish(try await SignedNote.sign(writer.flushed.text, with: old), by: old.key)
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
