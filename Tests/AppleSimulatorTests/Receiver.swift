import AppleSimulator
import EventLoop
import HTTPClient
import HTTPServer
import TestSupport

/// Somebody who gets notifications: answers with the statuses that it was told, the last one for ever.
@Loop
final class Receiver {
  private(set) var bodies: [[UInt8]] = []
  private var statuses: [Int]
  private var server: HTTPServer?

  /// Runs `body` while a receiver listens, with a plan that leads to it.
  static func run(
    answering statuses: [Int], _ body: @Loop (_ receiver: Receiver, _ plan: DeliveryPlan) async throws -> Void
  ) async throws {
    let receiver = Receiver(answering: statuses)
    let plan = DeliveryPlan(
      receiver: try receiver.listen(), attempts: 3, pause: .milliseconds(1), deadline: .seconds(300))
    try await withThrowingTaskGroup { group in
      group.addTask { await receiver.run() }
      do {
        try await body(receiver, plan)
      } catch {
        await receiver.stop()
        throw error
      }
      await receiver.stop()
    }
  }

  init(answering statuses: [Int]) { self.statuses = statuses }

  /// Where it is. It serves for as long as `run` runs.
  func listen() throws -> HTTPClientURL {
    let server = try HTTPServer(.plainOnLoopback) { [self] request in
      guard await request.readBody(upTo: 65_536) == .complete else { return HTTPResponse(status: 400) }
      bodies.append(request.withBody { body in body.bytes })
      return HTTPResponse(status: statuses.count > 1 ? statuses.removeFirst() : statuses[0])
    }
    self.server = server
    guard let url = HTTPClientURL("http://\(server.address)/apple") else { preconditionFailure("no address") }
    return url
  }

  func run() async { await server?.run() }

  func stop() async { await server?.drain(within: .seconds(1)) }
}

extension RawSpan {
  var bytes: [UInt8] { unsafe withUnsafeBytes { unsafe [UInt8]($0) } }
}
