import AccountEvents
import AccountServices
import EventLoop
import Glibc
import Telemetry

/// How fast the spool is drained into brokers that are simulated: what a request costs them is what they are slow by.
///
///     drain DIRECTORY RECORDS ACCOUNTS RATE
///
/// The brokers are away while RECORDS of ACCOUNTS are accepted, then they are back, while RATE more a second come for a
/// while. Prints how many records a second left the spool, and how many there were in a transaction and in a request.
@main
struct DrainBenchmark {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let records = Int(arguments[2]), let accounts = Int(arguments[3]),
      let rate = Int(arguments[4])
    else {
      print("drain DIRECTORY RECORDS ACCOUNTS RATE")
      exit(2)
    }
    let load = DrainLoad(directory: arguments[1], records: records, accounts: accounts, rate: rate)
    exit(Loop.run { await load.run() })
  }
}

struct DrainLoad: Sendable {
  let directory: String
  let records: Int
  let accounts: Int
  let rate: Int

  @Loop
  func run() async -> Int32 {
    do {
      let (registry, logger) = (MetricsRegistry(), Logger(level: .warning, format: .text))
      let spool = try await Spool.open(
        directory: directory, limit: 1 << 40, now: { .now }, registry: registry, logger: logger)
      let accepted = AcceptedEvents(
        in: directory, number: 1000, time: .seconds(3600), now: { .now }, logger: logger)
      let brokers = SimulatedBrokers()
      let publisher = try await EventPublisher(
        log: brokers, spool: spool, accepted: accepted, patience: .seconds(1), deadline: .seconds(5),
        pace: RetryPace(first: .milliseconds(250), longest: .seconds(30)), metrics: PublicationMetrics(registry),
        logger: logger)
      brokers.areAway = true
      try await publish(records, to: publisher)
      brokers.areAway = false
      let (start, commits) = (MonotonicTime.now, registry.value(of: "siwa_spool_commits_total"))
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask(executorPreference: Loop.executor) { await publisher.drain() }
        group.addTask(executorPreference: Loop.executor) { try await more(of: publisher, while: spool) }
        // A benchmark's own poll, which takes nothing from what is measured.
        while spool.depth > 0 { try await Loop.sleep(for: .milliseconds(20)) }
        let seconds = (MonotonicTime.now - start) / .seconds(1)
        let drained = registry.value(of: "siwa_ingress_events_drained_total")
        let transactions = registry.value(of: "siwa_spool_commits_total") - commits
        print(
          "\(Int(drained / seconds)) records/s, \(Int(drained / transactions)) a transaction,",
          "\(brokers.records / max(brokers.requests, 1)) a request, empty after \(seconds) s")
        group.cancelAll()
        await publisher.close(by: .now)
      }
      await spool.close()
      return 0
    } catch {
      print(error)
      return 1
    }
  }

  /// As it comes from Apple: account after account, now and then two records of one.
  @Loop
  private func publish(_ count: Int, to publisher: EventPublisher) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for sender in 0..<64 {
        group.addTask(executorPreference: Loop.executor) {
          for number in 0..<count / 64 {
            _ = try await publisher.publish(record(of: (number / 2 * 64 + sender) % accounts), as: nil)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Loop
  private func more(of publisher: EventPublisher, while spool: Spool) async throws {
    let start = MonotonicTime.now
    var sent = 0
    try await withThrowingTaskGroup(of: Void.self) { group in
      while spool.depth > 0, rate > 0 {
        while Double(sent) < (MonotonicTime.now - start) / .seconds(1) * Double(rate) {
          sent += 1
          let account = sent * 7919 % accounts
          group.addTask(executorPreference: Loop.executor) {
            _ = try await publisher.publish(record(of: account), as: nil)
          }
        }
        // So many a second are to come: this is their pace.
        try await Loop.sleep(for: .milliseconds(5))
      }
      try await group.waitForAll()
    }
  }

  private func record(of account: Int) -> EventRecord {
    EventRecord(
      topic: .accountEvents, key: Array("A1B2C3D4E5/\(account)".utf8),
      value: Array(repeating: UInt8(ascii: "v"), count: 300),
      headers: [EventRecord.Header(name: "apple-jws", value: Array(repeating: UInt8(ascii: "j"), count: 1200))])
  }
}

extension MetricsRegistry {
  /// What a metric without labels stands at.
  @Loop
  fileprivate func value(of name: String) -> Double {
    let lines = String(decoding: render(), as: UTF8.self).split(separator: "\n")
    return lines.first { $0.hasPrefix("\(name) ") }?.split(separator: " ").last.flatMap { Double($0) } ?? 0
  }
}
