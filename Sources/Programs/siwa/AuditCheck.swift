import AccountServices
import Configuration
import EventLoop
import TransparencyLog

/// `siwa audit check`: whether a receipt holds.
struct AuditCheck: Command {
  static let name = "audit check"
  static let summary = "Verifies a receipt offline, and says what it proves."
  static let details = """
    Nothing is asked of anybody: the receipt has the entry, its way up to the root of a tree, and the checkpoint that the
    log has signed over that tree. docs/verify.py does the same without any of our software.

    Exit codes: 0 the log has this entry, 1 it is not proven, 2 the command line makes no sense, 3 a file cannot be read.

    """
  static let examples = [
    CommandExample(
      "siwa audit check S25cB0PbHs6y97gYYmgydQ.effect.17.tlog-proof --vkey VKEY", "By the log's first key."),
    CommandExample(
      "siwa audit check FILE.tlog-proof --vkey VKEY --keys keys --witness VKEY",
      "After the log's key was rotated, and only if a witness has seen it."),
  ]

  private let file: String
  private let key: VerifierKey
  private let keys: String?
  private let witnesses: [VerifierKey]
  private let quorum: Int?

  init(reading arguments: inout CommandArguments) {
    file = arguments.read("FILE", .path, "The receipt, a .tlog-proof.")
    key = arguments.read("--vkey", "VKEY", .logKey, "The log's first key, from somebody that you trust.")
    keys = arguments.readIfPresent("--keys", "FILE", .path, "The log's file 'keys', where its key was rotated.")
    witnesses = arguments.readAll(
      "--witness", "VKEY", .witnessKey, "The key of a witness that counts; may be repeated.")
    quorum = arguments.readIfPresent(
      "--quorum", "NUMBER", .integer(0...32, unit: "witnesses"),
      "How many of the witnesses have to have cosigned; without it, all.")
  }

  func run() async -> ExitCode {
    guard var trust = LogTrust(by: key, witnesses, quorum: quorum) else { return .misuse }
    do {
      if let keys { trust = try trust.following(InputFile.read(keys, limit: KeyHistory.maximumByteCount)) }
      let bytes = try InputFile.read(file, limit: LogProof.maximumByteCount)
      let (receipt, checkpoint) = try AuditReceipt.verify(bytes, trusting: trust)
      Terminal.say(String(decoding: receipt.entry.bytes, as: UTF8.self))
      Terminal.say(
        """

        Log         \(checkpoint.checkpoint.origin)
        Entry       \(receipt.proof.index) of \(checkpoint.checkpoint.size)
        Signed by   \(checkpoint.key)
        """)
      if !witnesses.isEmpty {
        let names = Set(checkpoint.cosignatures.map(\.witness.name)).sorted().joined(separator: ", ")
        Terminal.say("Cosigned by \(names.isEmpty ? "nobody" : names)")
      }
      Terminal.say("The log has this entry.")
      return .success
    } catch let error as LogError {
      Terminal.complain("siwa: NO: \(error)")
      return .failure
    } catch {
      Terminal.complain("siwa: \(error)")
      return .unreachable
    }
  }
}
