import AccountEvents
import AccountServices
import EventLoop
import Foundation
import HTTPClient
import TestSupport
import Testing

/// Orders to a service that another implementation of Standard Webhooks plays.
@Loop
@Suite struct HTTPTargetTests {
  private static let secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

  private func ask<Value>(
    _ answer: String, _ body: @Loop (HTTPTarget, RunningProgram) async throws -> Value
  ) async throws -> Value {
    let script = Repository.root + "/Tests/AccountServicesTests/Python/erasure_service.py"
    return try await RunningProgram.run(path: Python.interpreter, [script, Self.secretText]) { program in
      try await until { program.output.contains("\n") }
      let port = try #require(program.output.split(separator: "\n").first.flatMap { Int($0) })
      let target = HTTPTarget(
        name: "shop", url: try #require(HTTPClientURL("http://127.0.0.1:\(port)/erasures/\(answer)")),
        secret: try #require(WebhookSecret(Self.secretText)), deadline: .seconds(300),
        client: HTTPClient(
          HTTPClientConfiguration(
            userAgent: "siwa", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300),
            maximumConnections: 4, maximumRequests: 16)),
        now: { .now })
      return try await body(target, program)
    }
  }

  @Test(Python.isThere) func sendsASignedOrderAndKeepsTheSignedAnswer() async throws {
    let order = ErasureOrder.sample
    try await ask("erased") { target, program in
      let result = try await target.erase(order)
      #expect(result.state == .erased && result.affected == 3 && result.found == 0)
      let kept = result.detail.split(separator: " ", maxSplits: 1)
      #expect(Int(kept[0]) != nil && kept[1].hasPrefix("v1a,AAAA v1,"))
      #expect(result.detail.hasSuffix(#"{"state": "erased", "affected": 3, "found": 0}"#))

      _ = try await target.erase(order)
      let received = program.output.split(separator: "\n").dropFirst().map { Data($0.utf8) }
      try #require(received.count == 2)
      let first = try JSONDecoder().decode(Received.self, from: received[0])
      let second = try JSONDecoder().decode(Received.self, from: received[1])
      #expect(first.id == "event-1.shop" && second.id == first.id, "the same order, the same id")
      #expect(first.order.type == "account.erase" && first.order.data.sub == order.account.subject.text)
      #expect(first.order.data.reason == "account-delete" && first.order.data.team == order.account.team.text)
    }
  }

  @Test(
    Python.isThere,
    arguments: [
      ("unsigned", ErasureFailure.Code.unsigned), ("other-secret", .unsigned), ("other-id", .unsigned),
      ("an-hour-ago", .unsigned), ("something-left", .remaining),
      ("too-much-said", .refused), ("not-now", .notNow), ("gateway", .unavailable), ("never", .refused),
    ])
  func takesNothingForAnErasureThatIsNone(_ answer: String, _ code: ErasureFailure.Code) async throws {
    try await ask(answer) { target, _ in
      let error = await #expect(throws: ErasureFailure.self) { try await target.erase(.sample) }
      #expect(error?.code == code)
      #expect(error?.detail.contains("Ada") == false)
    }
  }

  @Test(
    Python.isThere,
    arguments: [
      ("in-progress", nil), ("in-progress-after-7", 7), ("in-progress-after-0", 1), ("in-progress-after-99999", 3600),
      ("in-progress-after-soon", nil),
    ] as [(String, Int64?)])
  func knowsAServiceAtWorkAndWhenItWantsToBeAskedAgain(_ answer: String, _ seconds: Int64?) async throws {
    try await ask(answer) { target, _ in
      let result = try await target.erase(.sample)
      #expect(result.state == .inProgress(retryAfter: seconds.map { .seconds($0) }))
    }
  }

  @Test(Python.isThere) func knowsHowLongAServiceWantsToBeLeftAlone() async throws {
    try await ask("not-now-after-120") { target, _ in
      let error = await #expect(throws: ErasureFailure.self) { try await target.erase(.sample) }
      #expect(error?.code == .notNow && error?.retryAfter == .seconds(120))
    }
  }

  @Test(Python.isThere) func takesAConflictForThatOfOneRequest() async throws {
    try await ask("conflict-after-120") { target, _ in
      let error = await #expect(throws: ErasureFailure.self) { try await target.erase(.sample) }
      #expect(error?.code == .notNow && error?.retryAfter == nil)
    }
  }

  @Test func saysThatNobodyIsThere() async throws {
    let target = HTTPTarget(
      name: "shop", url: try #require(HTTPClientURL("http://127.0.0.1:1/")),
      secret: try #require(WebhookSecret(Self.secretText)), deadline: .seconds(300),
      client: HTTPClient(
        HTTPClientConfiguration(
          userAgent: "siwa", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 1,
          maximumRequests: 1)), now: { .now })
    let error = await #expect(throws: ErasureFailure.self) { try await target.erase(.sample) }
    #expect(error?.code == .unavailable)
  }

  @Test(arguments: [
    "", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ==",
    "whsec_" + String(repeating: "AAAA", count: 22),
  ])
  func knowsWhatIsNoSecret(_ text: String) { #expect(WebhookSecret(text) == nil) }

  @Test func showsNoSecret() throws {
    #expect("\(try #require(WebhookSecret(Self.secretText)))" == "«secret»")
  }
}

private struct Received: Decodable {
  struct Order: Decodable {
    struct Data: Decodable { let event, reason, team, sub: String }
    let type: String
    let data: Data
  }

  let id: String
  let order: Order
}

extension ErasureOrder {
  // swift-format-ignore: NeverForceUnwrap
  static let sample = ErasureOrder(
    account: Account(team: TeamID("A1B2C3D4E5")!, subject: AppleSubject("000768.6166f031.1521")!),
    event: EventID("event-1")!, reason: "account-delete", occurredAt: Timestamp(seconds: 1_657_617_063)!)
}
