import EventLoop
import Foundation
import Glibc
import HTTPClient
import TestSupport
import Testing

/// The program `siwa-ingress`, which is killed, frozen, ended and started again, always on one port.
@Loop
final class BreakableIngress {
  /// What the program believes of its clock and its disk.
  let faults: PreloadedFaults
  /// The port that Apple sends to.
  let port: UInt16
  /// How often it was started.
  private(set) var starts = 0
  /// How much memory it takes, and took at most, in megabytes; and by how much it grew at most in one life, after that
  /// life's first half minute.
  private(set) var memory = (now: 0.0, most: 0.0, growth: 0.0)

  /// How often it wrote each message that somebody should look at.
  private(set) var complaints: [String: Int] = [:]

  private var running: RunningIngress?
  private var isFrozen = false
  private var environment: [String: String]
  private let client: HTTPClient
  /// One figure a second, of this life.
  private var samples: [Double] = []
  private var lastSample = MonotonicTime(nanoseconds: 0)

  /// An ingress that does not run yet.
  init(_ stage: Stage, _ faults: PreloadedFaults, settings: [String: String]) throws {
    (self.faults, client) = (faults, stage.client)
    // Not one that the system gives to somebody else while this one is dead.
    let address = try SocketAddress.free()
    port = address.port
    environment = stage.environment.merging(faults.environment) { $1 }.merging(settings) { $1 }
    environment["SIWA_LOG_LEVEL"] = "info"
    environment["SIWA_INGRESS_LISTEN"] = "\(address)"
  }

  /// Starts it, and waits until it listens.
  func start() async throws {
    let program = try RunningProgram(RunningProgram.path(of: "siwa-ingress"), [], environment)
    let started = try await RunningIngress(program, client)
    running = started
    starts += 1
    samples = []
  }

  /// Kills it as a power cut would.
  func kill() async {
    await running?.program.kill()
    noteComplaints()
    running = nil
  }

  /// Ends it in good order.
  func end() async throws -> RunningProgram.End? {
    let end = try await running?.end()
    noteComplaints()
    running = nil
    return end
  }

  /// Stops it where it stands, connections open, until `thaw`.
  func freeze() {
    running?.program.signal(SIGSTOP)
    isFrozen = true
  }

  /// Lets it go on.
  func thaw() {
    running?.program.signal(SIGCONT)
    isFrozen = false
  }

  /// Whether it says that all of its parts are ready, and holds nothing that is not on the topic.
  func hasRecovered() async throws -> Bool {
    guard let running, try await running.get("/readyz").status == 200 else { return false }
    return try await spooled() == 0
  }

  /// What it says of itself, for whoever wonders why it has not recovered.
  var state: String {
    get async throws {
      guard let running else { return "the ingress does not run" }
      return try await running.get("/readyz").text + running.program.errors.suffix(2000)
    }
  }

  /// How many events wait in the spool.
  func spooled() async throws -> Int { try await metric("siwa_spool_records") }

  /// How many events went from the spool to their topic in this life.
  func drained() async throws -> Int { try await metric("siwa_ingress_events_drained_total") }

  /// How many events wait that Kafka refuses.
  func refused() async throws -> Int { try await metric("siwa_spool_refused_records") }

  /// How many notifications it answered 200 in this life, and how many it asked Apple to send again.
  func accepted() async throws -> Int { try await metric("siwa_ingress_notifications_accepted_total") }
  func deferred() async throws -> Int {
    try await values(of: "siwa_ingress_notifications_deferred_total").reduce(0, +)
  }

  /// Whether the spool takes records.
  func takesRecords() async throws -> Bool { try await metric("siwa_spool_takes_records") == 1 }

  private func metric(_ name: String) async throws -> Int { try #require(try await values(of: name).first) }

  /// What each line of a metric says: none before a metric with labels has its first.
  private func values(of name: String) async throws -> [Int] {
    guard !isFrozen, let text = try await running?.get("/metrics").text else { return [0] }
    return try text.split(separator: "\n").filter { $0.hasPrefix("\(name) ") || $0.hasPrefix("\(name){") }
      .map { line in try #require(line.split(separator: " ").last.flatMap { Int($0) }) }
  }

  private func noteComplaints() {
    let lines = running?.program.errors.split(separator: "\n") ?? []
    for line in lines where line.contains(#""level":"error""#) || !line.hasPrefix("{") {
      let message = line.range(of: #""message":""#).map { line[$0.upperBound...].prefix { $0 != "\"" } } ?? line
      complaints[String(message), default: 0] += 1
    }
  }

  /// Notes how much memory it takes, once a second.
  func sample() throws {
    guard let running, .now - lastSample >= .seconds(1) else { return }
    lastSample = .now
    let status = try String(contentsOfFile: "/proc/\(running.program.identifier)/status", encoding: .utf8)
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
      let kilobytes = line.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap({ Double($0) })
    else { return }
    samples.append(kilobytes / 1024)
    memory.now = kilobytes / 1024
    memory.most = max(memory.most, kilobytes / 1024)
    // Its first half minute fills caches and pools.
    if samples.count > 60 { memory.growth = max(memory.growth, kilobytes / 1024 - samples[30]) }
  }
}
