import Cryptography
import HTTPClient
import HTTPServer
import JSON

extension SimulatedApple {
  /// Does what was told over HTTP, and answers in JSON: 200 with what came of it, or 400 with what was expected.
  func obey(_ request: HTTPRequest) async -> HTTPResponse {
    guard request.hasMethod("POST") else { return HTTPResponse(status: 405, headers: [("Allow", "POST")]) }
    switch await request.readBody(upTo: 65_536) {
    case .complete: break
    case .refused(let refusal): return .text("\(refusal)\n", status: refusal.status)
    case .lost: return HTTPResponse(status: 400)
    }
    do {
      let order = try request.withBody { body throws(OrderRefusal) in try Order(body) }
      switch request.path {
      case "/simulator/notify": return try await notify(order)
      case "/simulator/keys": return try setKeys(order)
      case "/simulator/keys/rotate": return .answer(["kid": .string(try rotateKeys())])
      default: return .text("there is nothing at this path\n", status: 404)
      }
    } catch let refusal as OrderRefusal {
      return .answer(["expected": .string(refusal.expected)], status: 400)
    } catch {
      return .text("\(error)\n", status: 500)
    }
  }

  private func notify(_ order: Order) async throws -> HTTPResponse {
    guard let type: NotificationType = try order.choice("type") else { throw OrderRefusal(expected: "\"type\"") }
    guard let receiver = HTTPClientURL(try order.text("to")) else {
      throw OrderRefusal(expected: "\"to\", an https address, or http on loopback")
    }
    var plan = DeliveryPlan(
      receiver: receiver, attempts: Int(try order.number("attempts", 1...10, default: 1)), pause: .seconds(1),
      deadline: .seconds(30))
    plan.copies = Int(try order.number("copies", 1...100, default: 1))
    let notification = try sign(
      type, of: Person(named: try order.text("user")), for: try order.text("audience"),
      faults: try order.chosenFaults())
    let attempts = await deliver([notification], plan).flatMap(\.attempts)
    return .answer([
      "jti": .string(notification.notification.jti),
      "sub": .string(notification.notification.person.subject),
      "attempts": .array(attempts.map { .string($0.description) }),
    ])
  }

  private func setKeys(_ order: Order) throws -> HTTPResponse {
    keysAnswer = try order.choice("answer") ?? .keys
    keysDelay = .milliseconds(try order.number("delay_ms", 0...600_000, default: 0))
    return .answer(["answer": .string(keysAnswer.rawValue)])
  }
}

extension HTTPResponse {
  fileprivate static func answer(_ value: JSONValue, status: Int = 200) -> HTTPResponse {
    .json(value.bytes, status: status)
  }
}
