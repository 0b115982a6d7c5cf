import Configuration
import EventLoop
import TransparencyLog

/// `siwa audit create-key`: the key that signs the audit log's checkpoints.
struct AuditCreateKey: Command {
  static let name = "audit create-key"
  static let summary = "Makes the key of an audit log, in a new file that only this user can read."
  static let details = """
    The file has the private key in the form of Go's sumdb/note; audit-log.private-key names it. What is printed is the
    public key (a vkey): whoever verifies the log needs it, from somebody that they trust, so publish it where you publish
    what has to be believed of you, and keep it as audit.key. A file that is there already stays as it is.

    ORIGIN is the log's name for good: the address that it is published under, without https://.

    Exit codes: 0 made, 1 not made, 2 the command line makes no sense.

    """
  static let examples = [
    CommandExample(
      "siwa audit create-key audit.example.com/siwa /etc/siwa/tls/audit-key", "Once, before the first siwa-audit-log.")
  ]

  private let origin: String
  private let file: String

  init(reading arguments: inout CommandArguments) {
    origin = arguments.read("ORIGIN", .text(1...255), "The log's name, such as audit.example.com/siwa.")
    file = arguments.read("FILE", .path, "The new file, which audit-log.private-key then names.")
  }

  func run() async -> ExitCode {
    // A log that has begun so gets its next keys under that name.
    if origin.contains("://") || origin.hasSuffix("/") {
      Terminal.complain(
        "siwa: ORIGIN: an address without scheme and without a slash at its end is meant; it never changes")
    }
    return NoteKeyFile.create(named: origin, "ORIGIN", in: file)
  }
}

/// Files with private keys that sign notes.
enum NoteKeyFile {
  /// Makes a key of that name in a new file, and says its public key. `argument` is what the command line calls the name.
  static func create(named name: String, _ argument: String, in file: String) -> ExitCode {
    do {
      let (signer, text) = try NoteSigner.generate(name: name)
      try DurableFile(path: file).create(with: Array("\(text)\n".utf8))
      Terminal.say(signer.key.text)
      return .success
    } catch let error as LogError {
      Terminal.complain("siwa: \(argument): \(error.detail)")
      return .misuse
    } catch {
      Terminal.complain("siwa: \(file): \(error)")
      return .failure
    }
  }
}
