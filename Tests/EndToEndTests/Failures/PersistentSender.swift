import EventLoop
import Foundation
import TestSupport
import Testing

/// The program `persistent-sender`: it sends as Apple does, and repeats what was not answered 200.
@Loop
final class PersistentSender {
  /// What it says each second.
  struct Report: Decodable {
    var seconds: Double
    /// How many requests it has sent, and how many events were answered 200.
    var requests, acknowledged: Int
    /// How many connections it cut while an answer was under way, and how many answers it ignored.
    var cut, ignored: Int
    /// How many requests ended with their connection, and how many were given up.
    var broken, late: Int
    /// From a request to its answer, in milliseconds.
    var p50, p99, slowest: Int
    /// How often each status came.
    var answers: [String: Int]
    /// At the end: how many events of each user were acknowledged.
    var users: [Int]?

    /// How many answers were another than 200.
    var refused: Int { answers.reduce(0) { $0 + ($1.key == "200" ? 0 : $1.value) } }
  }

  private let program: RunningProgram

  /// Starts it. A million times the chance that a request's answer is cut off or ignored is `doubts`.
  init(
    to port: UInt16, _ bodies: SignedBodies, connections: Int = 64, rate: Int, doubts: Int, seed: UInt64
  ) throws {
    program = try RunningProgram(
      RunningProgram.path(of: "persistent-sender"),
      [
        "\(port)", bodies.path, "\(bodies.users)", "\(bodies.events)", "\(connections)", "\(rate)", "\(doubts)",
        "\(seed)",
      ])
  }

  /// Whether it has got everything answered.
  var hasEnded: Bool { program.hasEnded }

  /// What it said last, as it said it.
  var lastLine: String { (program.lastOutputLine ?? "") + program.errors }

  /// What it said last; nil in its first second.
  var report: Report? {
    get throws {
      try program.lastOutputLine.map { try JSONDecoder().decode(Report.self, from: Data($0.utf8)) }
    }
  }

  /// Tells it to begin nothing new.
  func stop() { program.signal(SIGTERM) }

  /// Waits until it has ended: all that it began is answered 200.
  func untilEnd() async throws -> Report {
    try await until(within: .seconds(3600)) { program.hasEnded }
    #expect(try await program.untilEnd() == .exit(0), "\(program.errors)")
    return try #require(try report)
  }

  /// Ends it at once.
  func kill() async { await program.kill() }
}
