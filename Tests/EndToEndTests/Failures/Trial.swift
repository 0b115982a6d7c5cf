import AccountEvents
import AppleSimulator
import EventLoop
import Foundation
import Glibc
import HTTPClient
import Kafka
import TestSupport
import Testing

/// A sender that repeats what was not answered 200, the ingress, three brokers, and all that breaks between them; then
/// the checker's word on what stands on the topics.
@Loop
final class Trial {
  let cluster: BreakableCluster
  let stage: Stage
  let ingress: BreakableIngress
  let bodies: SignedBodies
  /// How often each disruption was there, and the longest time from its end until all was well again.
  private(set) var recoveries: [Disruption: (times: Int, slowest: Duration)] = [:]
  private let beginnings: [String: [Int32: Int64]]
  private var sender: PersistentSender?
  private var audit: TrialAudit?
  private let begun = MonotonicTime.now
  private var lastProgress = MonotonicTime.now
  private let spool = TemporaryDirectory()

  /// Runs `body` with the ingress started and `users` with `events` each signed for, then mends what is still broken.
  static func run(
    users: Int, events: Int, settings: [String: String] = [:], _ body: @Loop (Trial) async throws -> Void
  ) async throws {
    async let signing = SignedBodies(users: users, events: events, with: Stage.ring.keys)
    let cluster = try await BreakableCluster.shared()
    let bodies = try await signing
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      let trial = try await Trial(cluster, stage, bodies, settings)
      let result: Result<Void, any Error>
      do {
        try await trial.ingress.start()
        try await until { try await trial.ingress.hasRecovered() }
        result = .success(try await body(trial))
      } catch { result = .failure(error) }
      await trial.sender?.kill()
      await trial.ingress.kill()
      await trial.audit?.kill()
      for disruption in Disruption.allCases where disruption.place == .brokers {
        for broker in 0..<3 { try await trial.end(disruption, broker) }
      }
      try result.get()
    }
  }

  private init(
    _ cluster: BreakableCluster, _ stage: Stage, _ bodies: SignedBodies, _ settings: [String: String]
  ) async throws {
    (self.cluster, self.stage, self.bodies) = (cluster, stage, bodies)
    let faults = try await PreloadedFaults(files: stage.files, folder: spool.path)
    let own = ["SIWA_INGRESS_SPOOL_DIRECTORY": spool.path, "SIWA_INGRESS_SPOOL_AFTER": "500ms"]
    ingress = try BreakableIngress(stage, faults, settings: own.merging(settings) { $1 })
    beginnings = try await TrialReader.ends(cluster.straight)
  }

  /// Starts the audit log beside it, whose word is heard at the end.
  func beginAudit() async throws { audit = try await TrialAudit(stage) }

  /// Kills the audit log, and starts it again.
  func killAudit() async throws {
    tell("the audit log is killed")
    try await audit?.killAndStart()
  }

  /// Begins to send.
  func send(rate: Int, doubts: Int, seed: UInt64) throws {
    sender = try PersistentSender(to: ingress.port, bodies, rate: rate, doubts: doubts, seed: seed)
  }

  /// What the sender said last.
  var report: PersistentSender.Report? { get throws { try sender?.report } }

  /// How many events were answered 200 so far.
  var acknowledged: Int { get throws { try report?.acknowledged ?? 0 } }

  /// Has one disruption, or two, come and go, and waits until all is well again.
  func run(_ episode: DisruptionSchedule.Episode) async throws {
    let words = [episode.disruption, episode.companion].compactMap { $0?.rawValue }.joined(separator: " + ")
    tell("\(words), for \(Self.seconds(episode.duration)) s")
    try await begin(episode.disruption, episode.broker)
    if let companion = episode.companion {
      try await pass(episode.duration / 3)
      try await begin(companion, episode.broker)
      try await pass(episode.duration / 3)
      try await end(companion, episode.broker)
      try await pass(episode.duration / 3)
    } else {
      try await pass(episode.duration)
    }
    try await end(episode.disruption, episode.broker)
    let recovery = try await untilRecovered()
    for disruption in [episode.disruption, episode.companion].compactMap({ $0 }) {
      let former = recoveries[disruption] ?? (0, .zero)
      recoveries[disruption] = (former.times + 1, max(former.slowest, recovery))
    }
    tell("well again after \(Self.seconds(recovery)) s")
    try await pass(episode.calm)
  }

  /// Waits until every part is ready, the spool is empty, and notifications are answered. Returns how long it took.
  @discardableResult
  func untilRecovered() async throws -> Duration {
    let (start, before) = (MonotonicTime.now, try acknowledged)
    while .now - start < Self.patience {
      try await watch()
      if try sender?.hasEnded != false || acknowledged > before + 20, try await hasRecovered() { return .now - start }
      try await Loop.sleep(for: .milliseconds(20))
    }
    throw NotRecovered(description: "not well again: \(try await ingress.state), the sender: \(sender?.lastLine ?? "")")
  }

  /// Much longer than it may take where it is measured, and than it takes on however busy a machine.
  private static let patience = Duration.seconds(240)

  /// All was not well again in time.
  struct NotRecovered: Error, CustomStringConvertible {
    let description: String
  }

  private func hasRecovered() async throws -> Bool {
    do { return try await ingress.hasRecovered() } catch is HTTPClientError { return false }
  }

  /// Lets time pass, and watches.
  func pass(_ duration: Duration) async throws {
    let end = MonotonicTime.now + duration
    while .now < end {
      try await watch()
      try await Loop.sleep(for: min(.milliseconds(200), end - .now))
    }
  }

  /// Notes how much memory the ingress takes; says now and then how it goes.
  private func watch() async throws {
    try ingress.sample()
    guard LongTrial.isAsked, .now - lastProgress > .seconds(5), let report = try report else { return }
    lastProgress = .now
    let spooled: String
    do { spooled = "\(try await ingress.spooled())" } catch is HTTPClientError { spooled = "?" }
    tell(
      "\(report.acknowledged) acknowledged, \(report.refused) refused, \(spooled) spooled, \(Int(ingress.memory.now)) MB"
    )
  }

  /// Waits until all that was sent is answered 200 and the spool is empty, ends the ingress, and reads the topics.
  func finish() async throws -> Outcome {
    let sent = try #require(try await sender?.untilEnd())
    try await untilRecovered()
    #expect(try await ingress.end() == .exit(0))
    let history = try await TrialReader.history(of: bodies, cluster.straight, from: beginnings)
    let audited = try await audit?.check(history, of: bodies.trial)
    return Outcome(
      sent: sent, verdict: history.verdict(acknowledged: try #require(sent.users)), recoveries: recoveries,
      memory: ingress.memory, starts: ingress.starts, complaints: ingress.complaints,
      audited: audited.map { ($0, audit?.starts ?? 0) })
  }

  /// Tells the sender to begin nothing new.
  func stopSending() { sender?.stop() }

  /// Says how it goes, at once, where somebody waits for it.
  func tell(_ line: String) {
    guard LongTrial.isAsked else { return }
    let elapsed = Self.seconds(.now - begun)
    FileHandle.standardOutput.write(Data("\(elapsed) s: \(line)\n".utf8))
  }

  nonisolated static func seconds(_ duration: Duration) -> String {
    String(format: "%.1f", Double(duration.wholeNanoseconds) / 1e9)
  }
}
