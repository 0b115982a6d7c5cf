import EventLoop
import Foundation
import Glibc
import Synchronization
public import Testing

/// A broker of Apache Kafka that runs for the tests, and never outlives them.
///
/// `KAFKA_HOME` names the unpacked Kafka; where it is unset, `../shared/kafka` is one.
public final class RealBroker: Sendable {
  /// Skips a test, visibly, where no Kafka is there.
  public static var isThere: ConditionTrait {
    .enabled("needs an unpacked Apache Kafka: name it by KAFKA_HOME") { home != nil }
  }

  /// The broker that all tests of the process share. Whoever kills a broker starts one of their own.
  public static func shared() async throws -> RealBroker { try await sharedBroker.value }

  private static let sharedBroker = Task { try await RealBroker([], takingTurns: false) }
  /// Each wants a quarter of a gigabyte, and seconds of a processor to start.
  private static let turns = Turns(6), starts = Turns(2)

  /// The unpacked Kafka; nil where there is none.
  public static let home: String? = {
    if let named = ProcessInfo.processInfo.environment["KAFKA_HOME"], !named.isEmpty { return named }
    let beside = Repository.root + "/../shared/kafka"
    return FileManager.default.fileExists(atPath: beside + "/bin/kafka-server-start.sh") ? beside : nil
  }()

  /// Where it listens, for the property `bootstrap.servers`.
  public let bootstrapServers: String
  private let process: Mutex<(identifier: pid_t, starts: Int)>
  /// The broker ends when its launcher's input does: when nobody holds this any more, so also when this process dies.
  private let launcher: RunningProgram
  private let takesTurns: Bool

  /// Why there is no broker.
  public struct NotStarted: Error, CustomStringConvertible {
    /// What to look at.
    public let description = "Tests/run-broker did not start a broker; see the standard error"
  }

  /// Starts a broker with these settings of its own, and waits until it takes clients: at first for its turn, as only so
  /// many run at once. No test holds two.
  public convenience init(_ settings: [String] = []) async throws { try await self.init(settings, takingTurns: true) }

  private init(_ settings: [String], takingTurns: Bool) async throws {
    takesTurns = takingTurns
    if takingTurns { await Self.turns.take() }
    do {
      let (launcher, port, identifier) = try await Self.starts.taking { try await Self.launch(settings) }
      self.launcher = launcher
      bootstrapServers = "127.0.0.1:\(port)"
      process = Mutex((identifier, 1))
    } catch {
      if takingTurns { Self.turns.giveBack() }
      throw error
    }
  }

  private static func launch(_ settings: [String]) async throws -> (RunningProgram, UInt16, pid_t) {
    let launcher = try await RunningProgram(
      Repository.root + "/Tests/run-broker", [home ?? ""] + settings, endsWithItsInput: true)
    let words = try await launcher.outputLine(with: " ").split { $0 == " " }
    guard words.count == 2, let port = UInt16(words[0]), let identifier = pid_t(words[1]) else { throw NotStarted() }
    return (launcher, port, identifier)
  }

  deinit { if takesTurns { Self.turns.giveBack() } }

  /// Why a tool failed.
  public struct ToolFailed: Error, CustomStringConvertible {
    /// What it said.
    public let description: String
  }

  /// Runs one of Kafka's own tools on the broker, to its end.
  @Loop
  public func run(_ tool: String, _ arguments: [String]) async throws {
    let (end, output, errors) = try await RunningProgram.finish(
      path: "\(Self.home ?? "")/bin/\(tool)", ["--bootstrap-server", bootstrapServers] + arguments)
    if end != .exit(0) { throw ToolFailed(description: "\(tool): \(output)\(errors)") }
  }

  private var identifier: pid_t { process.withLock { $0.identifier } }

  /// Kills the broker as a power cut would.
  public func kill() { Glibc.kill(identifier, SIGKILL) }

  /// Starts it again after `kill`, at the same address and with what it had, and waits until it takes clients.
  @Loop
  public func start() async throws {
    let starts = process.withLock { $0.starts } + 1
    try launcher.write("start\n")
    let words = try await launcher.outputLine(with: "start \(starts) ").split { $0 == " " }
    guard words.count == 3, let identifier = pid_t(words[2]) else { throw NotStarted() }
    process.withLock { $0 = (identifier, starts) }
  }

  /// Deletes a topic, as an operator does with Kafka's own tools.
  @Loop
  public func deleteTopic(_ name: String) async throws {
    let files = TemporaryDirectory()
    let words = [
      "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrapServers, "--delete", "--topic", name,
    ]
    let tool = (Self.home ?? "") + "/bin/kafka-run-class.sh"
    let run = try await RunningProgram.run(path: tool, words, ["LOG_DIR": files.path]) { program in
      (end: try await program.untilEnd(), errors: program.errors)
    }
    try #require(run.end == .exit(0), "\(run.errors)")
  }

  /// Stops the broker where it stands, connections open, until `thaw`. Returns once none of its threads runs.
  public func freeze() throws {
    Glibc.kill(identifier, SIGSTOP)
    let threads = "/proc/\(identifier)/task"
    for thread in try FileManager.default.contentsOfDirectory(atPath: threads) {
      // One that has ended meanwhile has no file any more, and runs no more.
      while let state = try? String(contentsOfFile: "\(threads)/\(thread)/stat", encoding: .utf8),
        !state.contains(") T ")
      {
        sched_yield()
      }
    }
  }

  /// Lets a frozen broker go on.
  public func thaw() { Glibc.kill(identifier, SIGCONT) }
}
