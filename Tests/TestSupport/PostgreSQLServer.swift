public import EventLoop
import Foundation
import Glibc
public import Testing

/// A PostgreSQL that runs for the tests, and never outlives them. It syncs what it commits.
@Loop
public final class PostgreSQLServer {
  /// Skips a test, visibly, where no PostgreSQL is there.
  public nonisolated static var isThere: ConditionTrait {
    .enabled("needs Debian's package postgresql") { programs != nil }
  }

  /// The server that all tests of the process share. Whoever kills or configures one starts one of their own.
  public static func shared() async throws -> PostgreSQLServer { try await sharedServer.value }

  private nonisolated static let sharedServer = Task { @Loop in try await PostgreSQLServer() }

  /// Where its programs lie, of the latest version; nil where there is none.
  public nonisolated static let programs: String? = {
    let root = "/usr/lib/postgresql"
    let latest = (14...40).last { FileManager.default.isExecutableFile(atPath: "\(root)/\($0)/bin/initdb") }
    return latest.map { "\(root)/\($0)/bin" }
  }()

  /// The folder that holds its Unix socket and, in `data`, its files.
  public nonisolated let directory: String
  /// Its port.
  public nonisolated let port: UInt16
  private var identifier: pid_t
  private var starts = 1
  private var databases = 0
  private let turns = Turns(4)
  /// The server ends when its launcher's input does: when nobody holds this any more, so also when this process dies.
  private let launcher: RunningProgram

  /// Why there is no server.
  public struct NotStarted: Error, CustomStringConvertible {
    /// What to look at.
    public let description = "Tests/run-postgres did not start a server; see the standard error"
  }

  /// Starts a server, with settings such as `listen_addresses=127.0.0.1`, and waits until it takes clients.
  public init(_ settings: [String] = []) async throws {
    launcher = try RunningProgram(
      Repository.root + "/Tests/run-postgres", [Self.programs ?? ""] + settings, endsWithItsInput: true)
    let words = try await launcher.outputLine(with: "start 1 ").split { $0 == " " }
    guard words.count == 5, let port = UInt16(words[3]), let identifier = pid_t(words[4]) else { throw NotStarted() }
    directory = String(words[2])
    self.port = port
    self.identifier = identifier
  }

  /// Makes a new database, and returns what libpq wants to hear of it. Each copies some megabytes and syncs them: a few at
  /// once are made, in turn.
  public func makeDatabase() async throws -> String {
    databases += 1
    let name = "test_\(databases)"
    _ = try await turns.taking { try await self.psql("CREATE DATABASE \(name)", database: "postgres") }
    return "host=\(directory) port=\(port) user=postgres dbname=\(name)"
  }

  /// Runs statements with PostgreSQL's own client, and returns what it prints: the values alone.
  @discardableResult
  public func psql(_ statements: String, database: String) async throws -> String {
    let end = try await RunningProgram.finish(
      path: (Self.programs ?? "") + "/psql",
      [
        "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
        "host=\(directory) port=\(port) user=postgres dbname=\(database)",
      ], input: statements)
    #expect(end.end == .exit(0), "\(end.errors)")
    return end.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// What PostgreSQL's own backup writes of a database, as text.
  public func dump(database: String) async throws -> String {
    let end = try await RunningProgram.finish(
      path: (Self.programs ?? "") + "/pg_dump",
      ["host=\(directory) port=\(port) user=postgres dbname=\(database)"])
    #expect(end.end == .exit(0), "\(end.errors)")
    return end.output
  }

  /// Kills the server as a power cut would.
  public func kill() { Glibc.kill(identifier, SIGKILL) }

  /// Starts it again after `kill`, with what it had synced.
  public func start() async throws {
    starts += 1
    try launcher.write("start\n")
    let words = try await launcher.outputLine(with: "start \(starts) ").split { $0 == " " }
    guard words.count == 5, let identifier = pid_t(words[4]) else { throw NotStarted() }
    self.identifier = identifier
  }
}
