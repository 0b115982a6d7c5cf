import AccountEvents
import AccountStore
import AppleID
import ConsumerSupport
import EventLoop
import HTTPServer
import JSON
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleSimulator

/// What happens to one person: two sign-ins, a deletion asked for in the app, and something that they do at Apple, each
/// step where the plan has it, by the real parts of the programs and an Apple of its own.
///
/// Then all that was begun is brought to its end, and all that Apple has to tell arrives.
@Loop
final class Course {
  /// What time it is in the course, by our clock.
  @Loop
  private final class Clock {
    var now = CourseRig.begin
  }

  /// How often something may be tried.
  private static let mostAttempts = 100

  let rig: CourseRig
  let plan: CoursePlan
  let person: Person
  let account: Account
  let apple: SimulatedApple
  let groups: ConsentGroups
  private let clock = Clock()
  private(set) var signIns: [CourseSignIn] = []
  private(set) var revoker = Party {}
  private let eraser: DataEraser
  private let deletions: Deletions
  /// What Apple has not told of yet.
  private var untold: [AccountEvent] = []
  /// What is on the topic.
  private var topic: [AccountEvent] = []
  /// How much of it each consumer has done.
  private var done: [ConsumerName: Int] = [:]
  private var findings: [String] = []
  private(set) var step = 0
  /// When it was asked for the deletion, by step.
  private(set) var askedAt: Int?
  /// What the person did at Apple: by step, and by Apple's clock.
  private(set) var happenedAt: (step: Int, time: Timestamp)?
  /// When that was told, by step.
  private(set) var arrivedAt: Int?
  /// The token of long before.
  private(set) var old = ""

  init(_ rig: CourseRig, _ plan: CoursePlan, named name: String) async throws {
    (self.rig, self.plan) = (rig, plan)
    person = Person(named: name)
    account = Account(team: rig.team, subject: try #require(AppleSubject(person.subject)))
    let (clock, skew, store) = (clock, plan.skew, rig.store)
    let now: @Sendable () -> Timestamp = { Loop.assumeIsolated { clock.now } }
    apple = rig.newApple { now() + skew }
    groups = ConsentGroups(plan.hasOwnConsent ? [rig.team: [[rig.client]]] : [:])
    deletions = Deletions(
      store, AccountSight(teams: [rig.client: rig.team], groups: groups), logger: rig.logger, now: now,
      isAhead: { _ in false }, announce: {})
    let policy = ErasureSettings.Policy(
      consentRevoked: [ErasureSettings.accountStore], accountDelete: [ErasureSettings.accountStore])
    let erasures = Erasures(
      [], store: store, concurrency: 1, registry: MetricsRegistry(), logger: rig.logger, now: now, clock: { Loop.now },
      random: { 1 })
    eraser = DataEraser(
      [rig.team: policy], erasures, groups: groups, patience: .seconds(900), store: store, now: now)
    for number in 1...2 {
      signIns.append(try CourseSignIn(number, in: self, named: name, now: now))
    }
    let watched = WatchedStore(store)
    watched.gate = { [weak self] call in
      if call == .standings || call == .settle { await self?.revoker.pause() }
    }
    let consumer = TokenRevoker(
      AppleRevocations(
        try rig.endpoints(for: "revoker", in: name), clock: { Loop.now }, random: { 1 }, logger: rig.logger),
      groups, store: watched, now: now
    ).consumer
    revoker = Party { [weak self] in await self?.carryOut(consumer, watched) }
    try await signInLongBefore()
  }

  var now: Timestamp { clock.now }
  /// What Apple's clock says.
  var applesNow: Timestamp { now + plan.skew }
  /// The refresh tokens that are good.
  var living: Set<String> { apple.authorizations.refreshTokens(of: person, CourseRig.app) }

  private func signInLongBefore() async throws {
    let code = try apple.signIn(person, to: CourseRig.app)
    old = try #require(
      try apple.authorizations.redeem(code, by: CourseRig.app, redirectURI: nil, at: applesNow)?.refresh)
    let token = NewToken(kind: .refresh, client: rig.client, value: try #require(SecretToken(old)))
    _ = try await rig.store.recordSignIn(account, at: now - .seconds(86_400), tokens: [token])
  }

  /// Runs it to its end, and returns what is wrong.
  func run() async throws -> [String] {
    for next in plan.steps {
      clock.now = now + plan.pace
      step += 1
      switch next {
      case .signIn(let number): await signIns[number - 1].step()
      case .takeBack(let number): try await signIns[number - 1].takeBack(beside: signIns[2 - number])
      case .ask: try await ask()
      case .happen: happen()
      case .arrive: arrive()
      case .revoker: await revoker.step()
      case .eraser: _ = try await attempt(eraser.consumer, rig.store)
      }
    }
    for signIn in signIns { await signIn.finish() }
    for signIn in signIns { await signIn.drain() }
    clock.now = now + .seconds(20)
    await revoker.finish()
    for _ in 1...Self.mostAttempts { if try await attempt(eraser.consumer, rig.store) == nil { break } }
    if done[.dataEraser, default: 0] < topic.count { findings.append("the eraser does not come to its end") }
    return try await findings + judge()
  }

  // MARK: Steps

  private func ask() async throws {
    do throws(Problem) {
      let caller = AccountsSettings.Caller(name: "shop", clients: [rig.client], tokens: [])
      let deletion = try await deletions.request(rig.store.id(of: account), by: caller).deletion
      topic.append(
        AccountEvent(
          id: deletion.id, team: account.team, audience: deletion.client, subject: account.subject,
          kind: .accountDeletionRequested, occurredAt: deletion.requestedAt, issuedAt: deletion.requestedAt))
      askedAt = step
    } catch {
      // It was erased before.
      if error.kind != .notFound { findings.append("the deletion could not be asked for") }
    }
  }

  private func happen() {
    apple.authorizations.end(person, plan.kind == .accountDelete ? nil : CourseRig.app)
    happenedAt = (step, applesNow)
    tell(plan.kind)
  }

  private func tell(_ kind: AccountEvent.Kind) {
    guard let id = EventID("\(account.subject.text)-\(step)-\(kind.name)-\(untold.count)") else { return }
    untold.append(
      AccountEvent(
        id: id, team: account.team, audience: rig.client, subject: account.subject, kind: kind, occurredAt: applesNow,
        issuedAt: applesNow + .seconds(5)))
  }

  private func arrive() {
    guard !untold.isEmpty else { return }
    let event = untold.removeFirst()
    if event.occurredAt == happenedAt?.time { arrivedAt = step }
    topic.append(event)
  }

  // MARK: Apple

  /// What Apple answers to somebody.
  func answer(_ request: HTTPRequest, to name: String, isRevocation: Bool) async -> HTTPResponse {
    let begun = Set(signIns.filter { $0.begunAt != nil }.map(\.number))
    if name == "revoker" {
      guard isRevocation else { return await apple.tokenResponse(request) }
      await revoker.pause()
      return await revoke(request, knowing: begun)
    }
    guard let signIn = signIns.first(where: { "\($0.number)" == name }) else { return HTTPResponse(status: 404) }
    if isRevocation { return await revoke(request, knowing: begun) }
    await signIn.party.pause()
    let before = living
    let response = await apple.tokenResponse(request)
    signIn.grantedAt = applesNow
    signIn.tokens = living.subtracting(before)
    return response
  }

  /// Who asks for it knows of those sign-ins: one that was begun since is ended with the others, and nobody can help it.
  private func revoke(_ request: HTTPRequest, knowing begun: Set<Int>) async -> HTTPResponse {
    let before = living
    let response = await apple.revocationResponse(request)
    guard !before.isEmpty, living.isEmpty else { return response }
    tell(.consentRevoked)
    for signIn in signIns where !begun.contains(signIn.number) && !signIn.tokens.isDisjoint(with: before) {
      signIn.isOvertaken = true
    }
    return response
  }

  // MARK: Consumers

  /// The token revoker, as its processor drives it.
  private func carryOut(_ consumer: EventConsumer, _ watched: WatchedStore) async {
    var attempts = 0
    while true {
      do {
        switch try await attempt(consumer, watched) {
        case true?: attempts = 0
        case false?:
          attempts += 1
          if revoker.isFree, attempts > Self.mostAttempts {
            return findings.append("the revoker does not come to its end")
          }
          await revoker.pause()
        case nil:
          if revoker.isFree, untold.isEmpty { return }
          if revoker.isFree { arrive() } else { await revoker.pause() }
        }
      } catch {
        return findings.append("the revoker: \(error)")
      }
    }
  }

  /// An attempt at the next event of the person; whether that is settled, and nil where there is none. What settles goes
  /// by way of `store`.
  private func attempt(_ consumer: EventConsumer, _ store: any AccountStore) async throws -> Bool? {
    let number = done[consumer.name, default: 0]
    guard number < topic.count else { return nil }
    let event = topic[number]
    guard let interest = consumer.interest(event), case .outside(let process) = consumer.work else { return nil }
    let reference = EventReference(
      id: event.id, account: account, hash: store.hash(of: account), occurredAt: event.occurredAt,
      origin: EventOrigin(topic: Topic.accountEvents.name, partition: 0, offset: Int64(number)),
      weight: interest.weight, yieldsTo: interest.yieldsTo)
    let delivery = Delivery(event: event, waits: Self.mostAttempts, reference: reference)
    let settlement: Settlement
    do {
      switch try await rig.store.standings(of: [reference], for: consumer.name)[0] {
      case .settled: preconditionFailure("each event is settled once here")
      case .superseded(let cause):
        try await consumer.lookAtVoid?(delivery, cause)
        settlement = Settlement(ofVoid: reference, by: consumer.name)
      case .open:
        let decision = try await process(delivery)
        settlement = Settlement(
          of: reference, by: consumer.name, outcome: decision.outcome, detail: decision.detail,
          changes: decision.changes)
      }
    } catch is ConsumerFailure {
      return false
    }
    let outcome = try await store.settle([settlement], at: now)[0]
    if outcome == .open { return false }
    done[consumer.name] = number + 1
    return true
  }
}
