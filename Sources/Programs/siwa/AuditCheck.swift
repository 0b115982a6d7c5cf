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

    Once the log's key was rotated, its file 'keys' is needed, with --keys, for a receipt that is younger than that. A
    receipt that is older proves nothing by itself any more: whoever has the replaced key, which may be why it was replaced,
    could have made it since. Witnesses that cosigned it vouch for it (--witness), or the log itself, which has to begin
    with the tree of the receipt (--log); that has the rotations, too.

    Exit codes: 0 the log has this entry, 1 it is not proven, 2 the command line makes no sense, 3 a file cannot be read.

    """
  static let examples = [
    CommandExample(
      "siwa audit check S25cB0PbHs6y97gYYmgydQ.effect.17.tlog-proof --vkey VKEY", "By the log's first key."),
    CommandExample(
      "siwa audit check FILE.tlog-proof --vkey VKEY --keys keys --witness VKEY",
      "After the log's key was rotated, and only if a witness has seen it."),
    CommandExample(
      "siwa audit check FILE.tlog-proof --vkey VKEY --log https://audit.example.com/siwa",
      "A receipt from before the rotation: the log still has to have it."),
  ]

  private let file: String
  private let key: VerifierKey
  private let keys: String?
  private let place: String?
  private let witnesses: WitnessArguments

  init(reading arguments: inout CommandArguments) {
    file = arguments.read("FILE", .path, "The receipt, a .tlog-proof.")
    key = arguments.read("--vkey", "VKEY", .logKey, "The log's first key, from somebody that you trust.")
    keys = arguments.readIfPresent("--keys", "FILE", .path, "The log's file 'keys', where its key was rotated.")
    place = arguments.readIfPresent(
      "--log", "LOG", .text(1...4096),
      "The log, which has to begin with the tree of the receipt: its directory, a bundle, or its https address.")
    witnesses = WitnessArguments(reading: &arguments)
  }

  func run() async -> ExitCode { await check() }

  @Loop
  private func check() async -> ExitCode {
    guard let trust = witnesses.trust(in: key) else { return .misuse }
    do {
      let bytes = try InputFile.read(file, limit: LogProof.maximumByteCount)
      let (receipt, checkpoint, head) = try await verify(bytes, trust)
      Terminal.say(String(decoding: receipt.entry.bytes, as: UTF8.self))
      Terminal.say(
        """

        Log         \(checkpoint.checkpoint.origin)
        Entry       \(receipt.proof.index) of \(checkpoint.checkpoint.size)
        Signed by   \(checkpoint.key)
        """)
      if !witnesses.witnesses.isEmpty {
        let names = Set(checkpoint.cosignatures.map(\.witness.name)).sorted().joined(separator: ", ")
        Terminal.say("Cosigned by \(names.isEmpty ? "nobody" : names)")
      }
      if let head { Terminal.say("Continued   by the log of \(head.size) entries, root \(head.root)") }
      Terminal.say("The log has this entry.")
      return .success
    } catch let error as LogError where error.code != .failed {
      Terminal.complain("siwa: NO: \(error)")
      return .failure
    } catch {
      return ExitCode(complainingOfLog: error)
    }
  }

  /// The receipt and its checkpoint, and the newest tree of the log where one was named, which continues the receipt's.
  @Loop
  private func verify(
    _ bytes: [UInt8], _ trust: LogTrust
  ) async throws -> (AuditReceipt, VerifiedCheckpoint, continuedBy: TreeHead?) {
    var trust = trust
    if let keys { trust = try trust.following(InputFile.read(keys, limit: KeyHistory.maximumByteCount)) }
    guard let place else {
      let (receipt, checkpoint) = try AuditReceipt.verify(bytes, trusting: trust)
      return (receipt, checkpoint, nil)
    }
    let opened = try LogPlace(place, trustAnchor: witnesses.trustAnchor)
    defer { opened.close() }
    let log = try await AuditLog.open(opened.source, trusting: trust)
    try AuditAccess.judgeStandIn(log.checkpoint)
    let (receipt, checkpoint) = try AuditReceipt.verify(bytes, trusting: log.trust, ofReplacedKeys: .none)
    let head = checkpoint.checkpoint.head
    if let newest = log.checkpoint.uncosignedSize, head.size > log.view.head.size {
      throw LogError(
        .notCosigned, LogPath.checkpoint,
        "the receipt is of \(head.size) entries, and witnesses have cosigned \(log.view.head.size) of the log's \(newest) "
          + "so far: check it again later")
    }
    guard try await log.view.consistencyProof(from: head.size).older == head else {
      throw LogError(.unproven, "", "the log at \(place) does not begin with the \(head.size) entries of the receipt")
    }
    return (receipt, checkpoint, log.view.head)
  }
}
