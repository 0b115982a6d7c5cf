import AccountStore
import EventLoop
import Foundation
import Glibc
import TestSupport
import Testing

/// A member of a consumer's group, which is killed, frozen, ended and started again.
@Loop
final class BreakableMember {
  let consumer: ConsumerName
  /// How often it was started, and how often killed.
  private(set) var starts = 0, kills = 0
  /// How often partitions came, and how often they went or were lost, in former lives.
  private var movements = (came: 0, went: 0)
  /// How often it wrote each message that somebody should look at, in former lives.
  private var complaints: [String: Int] = [:]
  private(set) var running: RunningMember?
  private let stage: ConsumerStage
  private let environment: [String: String]

  /// One that does not run yet.
  init(of consumer: ConsumerName, on stage: ConsumerStage, _ environment: [String: String]) {
    (self.consumer, self.stage, self.environment) = (consumer, stage, environment)
  }

  /// Starts it, and waits until it has begun.
  func start() async throws {
    if running != nil { return }
    running = try await stage.start(consumer, environment)
    starts += 1
  }

  /// Kills it as a power cut would.
  func kill() async {
    guard let running else { return }
    await running.program.kill()
    kills += 1
    forget()
  }

  /// Ends it in good order.
  func end() async throws -> RunningProgram.End? {
    let end = try await running?.end()
    forget()
    return end
  }

  /// Stops it where it stands, connections open, until `thaw`.
  func freeze() { running?.program.signal(SIGSTOP) }

  /// Lets it go on.
  func thaw() { running?.program.signal(SIGCONT) }

  /// Waits until the group has given it partitions in this life.
  func untilItHasPartitions() async throws { try await until { hasSaid("partitions came") } }

  /// Whether it has written that of itself in this life.
  func hasSaid(_ message: String) -> Bool { running?.program.errors.contains("\"message\":\"\(message)\"") ?? false }

  /// How often partitions came, and how often they went or were lost.
  var moved: (came: Int, went: Int) {
    let (came, went) = Self.movements(in: running)
    return (movements.came + came, movements.went + went)
  }

  /// How often it wrote each message that somebody should look at.
  var complained: [String: Int] { complaints.merging(Self.complaints(in: running), uniquingKeysWith: +) }

  private func forget() {
    (movements, complaints) = (moved, complained)
    running = nil
  }

  private static func movements(in running: RunningMember?) -> (came: Int, went: Int) {
    let lines = running?.program.errors.split(separator: "\n") ?? []
    return (
      lines.count { $0.contains(#""message":"partitions came""#) },
      lines.count { $0.contains(#""message":"partitions went"#) || $0.contains(#""message":"partitions were lost""#) }
    )
  }

  private static func complaints(in running: RunningMember?) -> [String: Int] {
    var complaints: [String: Int] = [:]
    let lines = running?.program.errors.split(separator: "\n") ?? []
    for line in lines where line.contains(#""level":"error""#) || !line.hasPrefix("{") {
      let message = line.range(of: #""message":""#).map { line[$0.upperBound...].prefix { $0 != "\"" } } ?? line
      complaints[String(message), default: 0] += 1
    }
    return complaints
  }
}
