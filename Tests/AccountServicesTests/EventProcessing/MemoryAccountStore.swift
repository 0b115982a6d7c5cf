import AccountEvents
import AccountStore
import EventLoop

/// Stands in for the real stores until there is one.
@Loop
final class MemoryAccountStore: AccountStore {
  struct Mark: Hashable { let consumer: ConsumerName, event: EventID }
  struct Pending { let number: Int64, consumer: ConsumerName, partition: Int32, announcement: Announcement }
  private(set) var ledger: [Mark: String] = [:]
  private(set) var attempts: [Mark: Int] = [:]
  private(set) var pending: [Pending] = []
  private var fences: [ConsumerName: [Account: [(severity: Int, at: Timestamp, tie: Int)]]] = [:]
  private var number: Int64 = 0
  private(set) var standingCalls = 0
  private(set) var settleCalls = 0
  var fault: AccountStoreError?

  private func fail() throws(AccountStoreError) { if let fault { throw fault } }

  private func standing(_ event: EventReference, _ consumer: ConsumerName) -> EventStanding {
    let mark = Mark(consumer: consumer, event: event.id)
    if ledger[mark] != nil { return .settled }
    let isCovered = (fences[consumer]?[event.account] ?? []).contains {
      $0.severity >= event.weight.severity && ($0.at, $0.tie) >= (event.occurredAt, event.weight.tie)
    }
    return isCovered ? .superseded(.newerEvent) : .open(attempts: attempts[mark] ?? 0)
  }

  func standings(
    of events: [EventReference], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [EventStanding] {
    standingCalls += 1
    try fail()
    return events.map { standing($0, consumer) }
  }

  func settle(_ settlements: [Settlement], at time: Timestamp) async throws(AccountStoreError) -> [SettledOutcome] {
    settleCalls += 1
    try fail()
    return settlements.map { settlement in
      let mark = Mark(consumer: settlement.consumer, event: settlement.event.id)
      let standing = standing(settlement.event, settlement.consumer)
      if standing == .settled { return .repeated }
      attempts[mark] = nil
      if case .superseded(let why) = standing {
        ledger[mark] = "superseded:\(why.rawValue)"
        return .superseded(why)
      }
      ledger[mark] = settlement.outcome
      fences[settlement.consumer, default: [:]][settlement.event.account, default: []].append(
        (settlement.event.weight.severity, settlement.event.occurredAt, settlement.event.weight.tie))
      return .applied(
        announcements: settlement.announcements.map { announcement in
          number += 1
          pending.append(
            Pending(
              number: number, consumer: settlement.consumer, partition: settlement.event.origin.partition,
              announcement: announcement))
          return number
        })
    }
  }

  func countAttempt(_ attempt: FailedAttempt) async throws(AccountStoreError) -> Int {
    try fail()
    attempts[Mark(consumer: attempt.consumer, event: attempt.event.id), default: 0] += 1
    return attempts[Mark(consumer: attempt.consumer, event: attempt.event.id)] ?? 0
  }

  func announcements(
    of consumer: ConsumerName, partition: Int32, limit: Int
  ) async throws(AccountStoreError) -> [NumberedAnnouncement] {
    try fail()
    return pending.filter { $0.consumer == consumer && $0.partition == partition }.prefix(limit).map {
      NumberedAnnouncement(number: $0.number, announcement: $0.announcement)
    }
  }

  func forget(announcements numbers: [Int64]) async throws(AccountStoreError) {
    try fail()
    pending.removeAll { numbers.contains($0.number) }
  }

  func recordSignIn(_ account: Account, at time: Timestamp, tokens: [NewToken]) async throws(AccountStoreError) {}
  func tokens(of account: Account) async throws(AccountStoreError) -> [StoredToken] { [] }
  func ownRevocations(of account: Account) async throws(AccountStoreError) -> [OwnRevocation] { [] }
  func relayStates(of accounts: [Account]) async throws(AccountStoreError) -> [RelayKnowledge] { [] }
  func erasureSteps(of event: EventID) async throws(AccountStoreError) -> [ErasureStep] { [] }
  func record(_ step: ErasureStep, of event: EventReference) async throws(AccountStoreError) {}
  func check() async throws(AccountStoreError) { try fail() }
  nonisolated func hash(of account: Account) -> AccountHash {
    guard let hash = AccountHash([UInt8](repeating: 7, count: 32)) else { preconditionFailure("32 bytes") }
    return hash
  }
  func close() async {}
}
