import AccountEvents
import AccountStore
import EventLoop
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleID

/// Runs of a plan against an Apple that says what a test wants, on a virtual clock.
@Loop
final class TransferRig {
  nonisolated static let (ours, theirs) = (team("A1B2C3D4E5"), team("F1B2C3D4E5"))
  nonisolated static let accepted = VirtualClock.start - .seconds(86_400)

  let clock: VirtualClock
  let store = MemoryTransferStore()
  private(set) var plan: TransferPlan
  /// What Apple says of a user.
  var answer: @Loop (TransferUser) async throws(AppleTokenError) -> TransferResult.Answer = { TransferRig.good($0) }
  /// Whether the other team gets an account; nil where its key is not at hand.
  var wayBack: TransferApple.WayBack?
  /// Whom Apple was asked about, and when.
  private(set) var asked: [(number: Int64, at: Timestamp)] = []
  /// How many are asked about at the moment, and were at most.
  private(set) var (underWay, mostUnderWay) = (0, 0)
  private var holders = 0

  nonisolated static func team(_ text: String) -> TeamID {
    guard let team = TeamID(text) else { preconditionFailure("a sample that is not valid") }
    return team
  }

  nonisolated static func subject(_ text: String) -> AppleSubject {
    guard let subject = AppleSubject(text) else { preconditionFailure("a sample that is not valid") }
    return subject
  }

  nonisolated static func identifier(_ text: String) -> TransferSubject {
    guard let identifier = TransferSubject(text) else { preconditionFailure("a sample that is not valid") }
    return identifier
  }

  nonisolated static func good(_ user: TransferUser) -> TransferResult.Answer {
    user.subject == nil
      ? .account(subject("000002.new\(user.number).0002"), address: nil, isPrivate: false)
      : .identifier(identifier("001876.r\(user.number)"))
  }

  nonisolated static let withdrawn = TransferResult.Answer.refused(.consentWithdrawn)

  init(
    _ side: TransferPlan.Side = .sending, accepted: Timestamp? = accepted, tried: Timestamp? = accepted,
    lateness: @escaping @Sendable () -> Duration = { .zero }
  ) throws {
    clock = VirtualClock(lateness: lateness)
    plan = try #require(
      TransferPlan(
        "summer", side, team: Self.ours, otherTeam: Self.theirs, client: ValidationRig.app,
        createdAt: VirtualClock.start, acceptedAt: accepted, triedAt: tried))
    _ = try store.add(plan)
  }

  /// Adds so many users.
  func fill(_ count: Int) {
    store.fill(
      (1...count).lazy.map { number in
        self.plan.side == .sending
          ? NewTransferUser(key: "customer-\(number)", subject: Self.subject("000001.old\(number).0001"))
          : NewTransferUser(key: "customer-\(number)", transferSubject: Self.identifier("001876.r\(number)"))
      })
  }

  /// Another process that takes the work over.
  func run(
    rate: Int = 100, concurrency: Int = 16, question: TransferRun.Question = .waiting,
    beliefs: TransferRun.Beliefs = [], patience: Int = 6
  ) throws -> TransferRun {
    holders += 1
    plan = try #require(try store.transferPlans().first)
    let lease = Lease(plan.lease, of: "process-\(holders)", at: clock.wall)
    store.holder = lease.holder
    return TransferRun(
      plan, store, under: lease, renew: { self.store.holder == $0.holder },
      apple: TransferApple({ user throws(AppleTokenError) in try await self.ask(user) }, wayBack: wayBack),
      rate: rate, concurrency: concurrency, question: question, beliefs: beliefs, patience: patience,
      clock: clock.clock)
  }

  private func ask(_ user: TransferUser) async throws(AppleTokenError) -> TransferResult.Answer {
    asked.append((user.number, clock.wall))
    underWay += 1
    mostUnderWay = max(mostUnderWay, underWay)
    defer { underWay -= 1 }
    await Loop.nextTurn()
    return try await answer(user)
  }

  /// How often each user was asked about.
  var counts: [Int64: Int] { asked.reduce(into: [:]) { $0[$1.number, default: 0] += 1 } }

  func users(_ state: TransferUser.State) -> [Int64] {
    store.users.values.filter { $0.state == state }.map(\.number).sorted()
  }
}

extension TransferRun.Ending {
  /// Its name alone.
  var name: String {
    switch self {
    case .complete: "complete"
    case .ended: "ended"
    case .leaseLost: "leaseLost"
    case .planGone: "planGone"
    case .notAccepted: "notAccepted"
    case .windowOver: "windowOver"
    case .appleFails: "appleFails"
    case .misconfigured: "misconfigured"
    case .allRefused: "allRefused"
    case .useless: "useless"
    case .allConflicts: "allConflicts"
    case .store: "store"
    }
  }
}
