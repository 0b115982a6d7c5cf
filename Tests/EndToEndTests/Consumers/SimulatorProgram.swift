import AppleSimulator
import EventLoop
import Foundation
import HTTPClient
import TestSupport
import Testing

/// The program `siwa simulate`.
@Loop
final class SimulatorProgram {
  let program: RunningProgram
  /// What the others need to know of it.
  private(set) var side: AppleSide
  private let client: HTTPClient

  /// Starts it with its files in `folder`, waits until it listens, and makes the team known to it.
  init(in folder: String) async throws {
    program = try RunningProgram(
      RunningProgram.path(of: "siwa"), ["simulate", "--port", "0", "--folder", folder])
    let keys = try #require(try await program.outputLine(with: "Apple (simulated)").split(separator: " ").last)
    _ = try await program.outputLine(with: "Trust anchor")
    let (certificate, privateKey) = ("\(folder)/certificate.pem", "\(folder)/key.pem")
    client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "tests", trustAnchors: .systemAnd(file: certificate), proxy: .none, connectTimeout: .seconds(300),
        maximumConnections: 4, maximumRequests: 64))
    let origin = String(keys.dropLast("/auth/keys".count))
    side = AppleSide(
      origin: origin, certificate: certificate, privateKey: privateKey, key: DeveloperKey(id: "", privateKeyPEM: ""))
    let answer = try await order("team", ["team": AppleSide.team, "audiences": [AppleSide.app]])
    let key = DeveloperKey(
      id: try #require(answer["key_id"] as? String), privateKeyPEM: try #require(answer["private_key"] as? String))
    side = AppleSide(origin: origin, certificate: certificate, privateKey: privateKey, key: key)
  }

  /// Runs it, with its files among these, for as long as `body` needs it.
  static func run(
    in files: TemporaryDirectory, _ body: @Loop (SimulatorProgram) async throws -> Void
  ) async throws {
    let simulator = try await SimulatorProgram(in: files.path + "/simulator")
    let result: Result<Void, any Error>
    do { result = .success(try await body(simulator)) } catch { result = .failure(error) }
    await simulator.program.kill()
    try result.get()
  }

  /// Tells it to do something, and returns its answer.
  @discardableResult
  func order(_ path: String, _ words: [String: Any] = [:]) async throws -> [String: Any] {
    let url = try #require(HTTPClientURL("\(side.origin)/simulator/\(path)"))
    let body = [UInt8](try JSONSerialization.data(withJSONObject: words))
    let answer = try await client.send(
      .post(body, to: url, headers: [], isRepeatable: true, within: .seconds(300), maximumBodySize: 65_536))
    try #require(answer.status == 200, "\(path): \(String(decoding: answer.body, as: UTF8.self))")
    return try #require(try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
  }

  /// Has somebody sign in, and returns the code.
  func signIn(_ user: String) async throws -> String {
    try #require(try await order("sign-in", ["user": user, "audience": AppleSide.app])["code"] as? String)
  }

  /// Has it tell the ingress of an event, and returns the event's id.
  func notify(_ type: NotificationType, _ user: String, to ingress: HTTPClientURL) async throws -> String {
    let answer = try await order(
      "notify", ["type": type.rawValue, "user": user, "audience": AppleSide.app, "to": ingress.text, "attempts": 5])
    // Apple tries again where the ingress is too slow to answer. Any other answer than 200 would be wrong.
    let attempts = try #require(answer["attempts"] as? [String])
    #expect(attempts.last == "200" && attempts.dropLast().allSatisfy { Int($0) == nil }, "\(attempts)")
    return try #require(answer["jti"] as? String)
  }

  /// How often each endpoint was asked.
  func asked() async throws -> [String: Int] { try #require(try await order("asked") as? [String: Int]) }
}
