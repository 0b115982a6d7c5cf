import AccountEvents
import EventLoop
import HTTPServer
import TestSupport
import TransparencyLog

/// A witness (C2SP tlog-witness) of one log: cosigns what continues the tree that it cosigned last, unless it is told to do
/// something else.
@Loop
final class TestWitness {
  /// How it answers.
  enum Manner {
    /// As the protocol has it.
    case honest
    /// Not at all, for as long as it is told so.
    case hanging
    /// 409, whatever size is named to it.
    case neverContent
    /// 200, with a cosignature that is none.
    case forging
  }

  /// What the log's operator calls it.
  nonisolated let name: String
  /// Its key.
  nonisolated let key: VerifierKey
  /// Its submission prefix.
  nonisolated let prefix: String
  /// How it answers from now on.
  var manner: Manner
  /// What it was asked to cosign, in that order.
  private(set) var asked: [SignedNote] = []
  /// How often a checkpoint of the log did not continue the one before it.
  private(set) var contradictions = 0

  private let cosigner: Cosigner
  private let log: VerifierKey
  private var head = TreeHead.empty
  private var server: HTTPServer?

  /// Runs `body` while witnesses of these names and manners serve.
  static func run(
    _ manners: [(name: String, manner: Manner)], of log: VerifierKey,
    _ body: @Loop ([TestWitness]) async throws -> Void
  ) async throws {
    let witnesses = try manners.enumerated().map { place, it in
      try TestWitness(it.name, it.manner, seed: UInt8(place + 1), of: log)
    }
    try await withThrowingTaskGroup { group in
      for witness in witnesses { group.addTask(executorPreference: Loop.executor) { await witness.server?.run() } }
      let result: Result<Void, any Error>
      do { result = .success(try await body(witnesses)) } catch { result = .failure(error) }
      for witness in witnesses {
        if witness.manner == .hanging { witness.manner = .neverContent }
        await witness.server?.drain(within: .seconds(1))
      }
      try result.get()
    }
  }

  private init(_ name: String, _ manner: Manner, seed: UInt8, of log: VerifierKey) throws {
    cosigner = try Cosigner(name: "witness.example/\(name)", seed: [UInt8](repeating: seed, count: 32))
    (self.name, self.manner, self.log, key) = (name, manner, log, cosigner.key)
    let answering = Answering()
    let server = try HTTPServer(.plainOnLoopback) { request in
      await answering.witness?.answer(request) ?? HTTPResponse(status: 500)
    }
    prefix = "http://\(server.address)/of/\(name)"
    self.server = server
    answering.witness = self
  }

  @Loop private final class Answering {
    weak var witness: TestWitness?
  }

  private func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let path = String(prefix.drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" }) + "/add-checkpoint"
    guard request.hasMethod("POST"), request.path == path else { return HTTPResponse(status: 404) }
    guard await request.readBody(upTo: WitnessRequest.maximumByteCount) == .complete else {
      return HTTPResponse(status: 400)
    }
    let body = request.withBody { body in unsafe body.withUnsafeBytes { unsafe [UInt8]($0) } }
    do {
      let question = try WitnessRequest(body)
      _ = try question.note.verified(by: [log])
      asked.append(question.note)
      while manner == .hanging { try await Loop.sleep(for: .milliseconds(10)) }
      return try answer(question, Checkpoint(question.note.text).head)
    } catch {
      return HTTPResponse(status: 403)
    }
  }

  private func answer(_ question: WitnessRequest, _ next: TreeHead) throws -> HTTPResponse {
    if manner == .neverContent || question.oldSize != head.size {
      let size = manner == .neverContent ? question.oldSize / 2 : head.size
      return HTTPResponse(
        status: 409, headers: [("Content-Type", WitnessAnswer.sizeContentType)], body: .bytes(Array("\(size)\n".utf8)))
    }
    guard question.consistency.proves(next, continues: head) else {
      contradictions += 1
      return HTTPResponse(status: 422)
    }
    // A forger signs another text.
    let text = manner == .forging ? Array("another\n".utf8) : question.note.text
    let signature = try cosigner.cosign(text, at: UInt64(Timestamp.now.milliseconds / 1000))
    if manner == .honest { head = next }
    return HTTPResponse(status: 200, body: .bytes(Array(signature.line.utf8)))
  }
}
