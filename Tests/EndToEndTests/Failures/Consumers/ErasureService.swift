import Cryptography
import EventLoop
import Foundation
import HTTPServer
import TestSupport
import Testing

/// A service that erases on request, which at times takes requests and answers none.
@Loop
final class ErasureService {
  /// Who was erased.
  private(set) var erased: Set<String> = []
  /// How many orders were signed wrongly, or asked something else under an id that was used before.
  private(set) var wrong = 0
  /// How many requests wait for their answer.
  private(set) var held = 0
  /// Whether it answers nothing.
  var isSilent = false {
    didSet {
      silence.open()
      silence = Gate()
    }
  }
  private let key = HMAC(key: ErasureService.secret)
  private var silence = Gate()
  private var subjects: [String: String] = [:]
  private var server: HTTPServer?

  private static let secret = [UInt8](repeating: 7, count: 32)

  /// Lets through what waits once it is opened.
  private final class Gate {
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func wait() async { await withCheckedContinuation { waiting.append($0) } }

    func open() {
      let former = waiting
      waiting = []
      for one in former { one.resume() }
    }
  }

  /// A service on a free port of loopback, which shares a secret with the data eraser by a file.
  init(_ files: TemporaryDirectory) throws {
    _ = files.write("service-secret", "whsec_" + Base64.encode(Self.secret))
    server = try HTTPServer(.plainOnLoopback) { [weak self] request in
      await self?.answer(request) ?? HTTPResponse(status: 503)
    }
  }

  /// What the data eraser is told about it, in YAML. A call that gets no answer ends soon.
  var target: String {
    """
        service:
          url: http://\(server.map { "\($0.address)" } ?? "")/
          secret: service-secret
          deadline: 3s
    """
  }

  /// Serves until the task is cancelled.
  func run() async { await server?.run() }

  private func answer(_ request: HTTPRequest) async -> HTTPResponse {
    guard case .complete = await request.readBody(upTo: 65_536) else { return HTTPResponse(status: 400) }
    let body = request.withBody { bytes in unsafe bytes.withUnsafeBytes { unsafe Array($0) } }
    let (id, time) = (request.header("webhook-id") ?? "", request.header("webhook-timestamp") ?? "")
    guard signature(id, time, body) == request.header("webhook-signature"), let subject = subject(of: body),
      subjects[id, default: subject] == subject
    else {
      wrong += 1
      return HTTPResponse(status: 401)
    }
    subjects[id] = subject
    held += 1
    if isSilent { await silence.wait() }
    held -= 1
    erased.insert(subject)
    let answer = Array(#"{"state":"erased","affected":1,"found":0}"#.utf8)
    let now = "\(Int(Date().timeIntervalSince1970))"
    return HTTPResponse(
      status: 200,
      headers: [
        ("content-type", "application/json"), ("webhook-id", id), ("webhook-timestamp", now),
        ("webhook-signature", signature(id, now, answer)),
      ], body: .bytes(answer))
  }

  private func subject(of order: [UInt8]) -> String? {
    do {
      let members = try JSONSerialization.jsonObject(with: Data(order)) as? [String: Any]
      return (members?["data"] as? [String: Any])?["sub"] as? String
    } catch { return nil }
  }

  private func signature(_ id: String, _ time: String, _ body: [UInt8]) -> String {
    "v1," + Base64.encode(key.code(for: Array("\(id).\(time).".utf8) + body).bytes)
  }
}
