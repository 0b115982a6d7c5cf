import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import HTTPServer
import Kafka
import TestSupport
import Testing
import TransparencyLog

/// Events that stream in, two members of each consumer's group, Apple, and all that breaks between them; then the word of
/// the checker on what came of each event, and the whole topic once more.
@Loop
final class ConsumerTrial {
  /// How much there is to do, and what breaks meanwhile.
  struct Plan {
    var people: Int
    /// How many events at least: they go on until all has come and gone that breaks.
    var events: Int
    /// How many events a second.
    var rate: Int
    var isPostgreSQL: Bool
    /// What breaks, each once in random order, and again until all is sent if `repeats`.
    var disruptions: [ConsumerDisruption]
    var repeats = false
    /// How long a disruption lasts, in seconds.
    var lasting: ClosedRange<Double>
  }

  let plan: Plan
  let stage: ConsumerStage
  let apple: SimulatedApple
  /// Erases what the shop does not hold.
  let service: ErasureService
  let stream: EventStream
  let members: [BreakableMember]
  let faults: PreloadedFaults?
  let database: PostgreSQLServer?
  let progress: GroupProgress
  var random: SeededRandom
  /// The audit log; nil before the first.
  private(set) var auditLog: RunningAuditLog?
  /// Who reads its checkpoints.
  let auditor: CheckpointReader
  /// How often each disruption was there.
  private(set) var disrupted: [ConsumerDisruption: Int] = [:]
  /// From the last disruption, or the last event, until all was done.
  private(set) var settling = Duration.zero
  private var withTokens: Set<Person> = []
  private let begun = MonotonicTime.now
  private var lastTold = MonotonicTime.now

  /// Everybody may do everything, until there is a rule for a topic.
  private nonisolated static let rights = [
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found=true",
  ]

  /// Runs a trial to its end, and returns what came of it.
  static func run(_ plan: Plan) async throws -> ConsumerOutcome {
    let (files, broker) = (TemporaryDirectory(), try await RealBroker(Self.rights))
    let (apple, server, side) = try makeApple(in: files)
    let database = plan.isPostgreSQL ? try await PostgreSQLServer() : nil
    let service = try ErasureService(files)
    let form = ConsumerStage.Form(
      postgreSQL: try await database?.makeDatabase(), onConsentRevoked: "[shop, service]", target: service.target,
      session: .seconds(6), partitions: 6)
    var outcome: ConsumerOutcome?
    try await withThrowingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { await server.run() }
      group.addTask(executorPreference: Loop.executor) { await service.run() }
      defer { group.cancelAll() }
      try await ConsumerStage.run(broker, side, in: files, form) { stage in
        let trial = try await ConsumerTrial(plan, stage, apple, service, database)
        let result: Result<ConsumerOutcome, any Error>
        do { result = .success(try await trial.run()) } catch { result = .failure(error) }
        broker.thaw()
        service.isSilent = false
        trial.stream.stop()
        outcome = try result.get()
      }
    }
    return try #require(outcome)
  }

  /// An Apple, which serves once its server runs.
  static func makeApple(
    in files: TemporaryDirectory
  ) throws -> (SimulatedApple, SimulatedAppleServer, AppleSide) {
    let made = try SelfSignedCertificate(
      for: ["127.0.0.1"], validFrom: Timestamp.now.milliseconds / 1000 - 3600, seconds: 86_400)
    let certificate = files.write("certificate.pem", made.certificatePEM)
    let key = files.write("key.pem", made.privateKeyPEM)
    let apple = SimulatedApple(
      ring: Stage.ring, issuer: AppleNotification.appleIssuer, trustAnchors: .systemAnd(file: certificate),
      clock: { .now })
    // What is asked of it takes a while, so that some of it is cut short.
    apple.revocationsDelay = .milliseconds(20)
    let server = try SimulatedAppleServer(
      apple, port: 0, tls: TLSServerConfiguration(certificateFile: certificate, privateKeyFile: key))
    let side = AppleSide(
      origin: "https://\(server.address)", certificate: certificate, privateKey: key,
      key: try apple.enroll(team: AppleSide.team, clients: [AppleSide.app]))
    return (apple, server, side)
  }

  private init(
    _ plan: Plan, _ stage: ConsumerStage, _ apple: SimulatedApple, _ service: ErasureService,
    _ database: PostgreSQLServer?
  ) async throws {
    (self.plan, self.stage, self.apple, self.service, self.database) = (plan, stage, apple, service, database)
    random = SeededRandom()
    stream = EventStream(people: plan.people, random)
    faults =
      plan.isPostgreSQL ? nil : try await PreloadedFaults(files: stage.files, folder: stage.files.path + "/store")
    progress = try GroupProgress(stage.broker.bootstrapServers)
    auditor = try CheckpointReader(stage.auditKey.key, files: stage.files)
    let environment = faults?.environment ?? [:]
    members = TopicPlan.consumers.flatMap { consumer in
      (0..<2).map { _ in BreakableMember(of: consumer, on: stage, environment) }
    }
  }

  private func run() async throws -> ConsumerOutcome {
    tell("seed \(random.seed), at least \(plan.events) events of \(plan.people) people, \(plan.rate) a second")
    try stage.shop.welcome(stream.people)
    // Every other person has a token.
    withTokens = Set(stride(from: 0, to: stream.people.count, by: 2).map { stream.people[$0] })
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, person) in stream.people.filter(hasToken).enumerated() {
        if number >= 64 { _ = try await group.next() }
        group.addTask(executorPreference: Loop.executor) { [stage, stream, apple] in
          _ = try await stage.signIn(
            person, code: try apple.signIn(person, to: AppleSide.app), at: stream.beginning - .seconds(86_400))
        }
      }
      try await group.waitForAll()
    }
    try await start(members)
    try await startAuditLog()
    try stream.send(rate: plan.rate, atLeast: plan.events, on: stage)
    var schedule: [ConsumerDisruption] = plan.disruptions.shuffled(using: &random)
    while let disruption = schedule.popLast() {
      try await pass()
      tell("\(disruption.rawValue); \(stream.events.count) sent")
      try await disrupt(disruption)
      disrupted[disruption, default: 0] += 1
      for member in members where member.running?.program.hasEnded != false {
        Issue.record("\(member.consumer) ended by itself: \(member.running?.program.errors.suffix(2000) ?? "")")
      }
      if schedule.isEmpty, plan.repeats, stream.events.count < plan.events / 100 * 97 {
        schedule = plan.disruptions.shuffled(using: &random)
      }
    }
    try await stream.end()
    #expect(stream.acknowledged == stream.events.count && stream.refused == 0)
    let start = MonotonicTime.now
    try await untilAllIsDone()
    settling = .now - start
    for member in members { #expect(try await member.end() == .exit(0), "\(member.consumer)") }
    tell("all is done; \(apple.revocationsAsked) revocations")
    var verdict = try await check()
    tell("all was checked")
    try await readEverythingAgain()
    verdict.audited = try await checkAuditLog()
    await progress.close()
    tell("all was read again")
    return ConsumerOutcome(self, verdict)
  }

  /// Starts the audit log, which does not run.
  func startAuditLog() async throws {
    let log = try await stage.startAuditLog()
    auditor.follow(log)
    auditLog = log
  }

  /// Whether the person has signed in, so that there was a token.
  func hasToken(_ person: Person) -> Bool { withTokens.contains(person) }

  /// Waits until the groups have committed all that is on the topic.
  func untilAllIsDone() async throws {
    for consumer in TopicPlan.consumers {
      do {
        // However much there is to do, something of it is done in that time.
        var open = Int64.max
        while open > 0 {
          try await until(within: .seconds(240), every: .milliseconds(100)) {
            guard let left = try await progress.openIfKnown(of: consumer), left < open else { return false }
            open = left
            return true
          }
          try await tellHowFar()
        }
      } catch is CancellationError {
        let logs = members.filter { $0.consumer == consumer }.map { $0.running?.program.errors.suffix(3000) ?? "-" }
        Issue.record("seed \(random.seed): \(consumer) has not done everything: \(logs.joined(separator: "\n---\n"))")
        throw CancellationError()
      }
    }
  }

  /// Says now and then how many records the groups have before them.
  private func tellHowFar() async throws {
    guard LongTrial.isAsked, .now - lastTold > .seconds(5) else { return }
    lastTold = .now
    var words: [String] = []
    for consumer in TopicPlan.consumers {
      words.append("\(consumer) \(try await progress.openIfKnown(of: consumer) ?? -1)")
    }
    tell("to be done: \(words.joined(separator: ", "))")
  }

  /// How long a disruption lasts is the fault itself; what comes of it is waited for by what the groups have done.
  func pass() async throws { try await Loop.sleep(for: .seconds(Double.random(in: plan.lasting, using: &random))) }

  /// Says how it goes, at once, where somebody waits for it.
  func tell(_ line: String) {
    guard LongTrial.isAsked else { return }
    FileHandle.standardOutput.write(Data("\(Trial.seconds(.now - begun)) s: \(line)\n".utf8))
  }
}
