import AccountServices
import AccountStore
import EventLoop
import Foundation
import HTTPClient
import TestSupport
import Testing

/// The program of a consumer, taking part in its group.
@Loop
final class RunningMember {
  let consumer: ConsumerName
  let program: RunningProgram
  /// Where mailers ask; nil of a consumer that nobody asks.
  let mailers: SocketAddress?
  private let administration: Administration
  private let client = HTTPClient(
    HTTPClientConfiguration(
      userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 2,
      maximumRequests: 64))

  /// Waits until it has begun.
  init(_ program: RunningProgram, of consumer: ConsumerName) async throws {
    (self.program, self.consumer) = (program, consumer)
    mailers =
      consumer == .emailRelay ? try await program.address("listen.address", saidWith: "mailers ask here") : nil
    administration = Administration(try await program.address("listen.administration", saidWith: "consumer begins"))
  }

  /// Asks as operators do.
  func get(_ path: String) async throws -> (status: Int, text: String) { try await administration.get(path) }

  /// The metric of that name and those labels.
  func metric(_ name: String) async throws -> Double { try await administration.metric(name) }

  /// What a mailer is told of somebody.
  func mayBeSent(to subject: String, token: String) async throws -> (status: Int, text: String) {
    let mailers = try #require(mailers)
    let url = try #require(HTTPClientURL("http://\(mailers)/v1/email-relay/\(AppleSide.team)/\(subject)"))
    let response = try await client.send(
      .get(url, headers: [("Authorization", "Bearer \(token)")], within: .seconds(300), maximumBodySize: 65_536))
    return (response.status, String(decoding: response.body, as: UTF8.self))
  }

  /// Tells it to end, and waits for that.
  func end() async throws -> RunningProgram.End {
    program.signal(SIGTERM)
    return try await program.untilEnd()
  }
}

extension RunningProgram {
  /// The address that stands under `name` in a line of the program's log.
  func address(_ name: String, saidWith message: String) async throws -> SocketAddress {
    let line = try await line(with: "\"message\":\"\(message)\"")
    let words = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    return try #require((words[name] as? String).flatMap { SocketAddress($0) }, "\(line)")
  }
}
