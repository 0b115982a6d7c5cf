import AccountEvents
import AccountStore
import Cryptography
import EventLoop

/// Transfers in memory, as a store keeps them: what a test kills, and finds again.
@Loop
final class MemoryTransferStore: TransferStore {
  /// Who holds the lease of the plans.
  var holder: String?
  /// Fails what it throws in, before anything is written, and after.
  var before: @Loop (_ call: String) throws(AccountStoreError) -> Void = { _ in }
  var after: @Loop (_ call: String) throws(AccountStoreError) -> Void = { _ in }
  /// How many results each group had.
  private(set) var groups: [Int] = []
  private(set) var users: [Int64: TransferUser] = [:]
  private var plans: [String: TransferPlan] = [:]
  private var order: [Int64] = []
  private var imported: Set<SHA256Digest> = []

  /// Takes somebody out, as an erasure does.
  func erase(_ number: Int64) { users[number] = nil }

  /// Has the row of somebody no longer open: how they stand is all that is known.
  func damage(_ number: Int64) {
    guard let state = users[number]?.state else { return }
    users[number] = TransferUser(number: number, key: "", state: state)
    users[number]?.reason = .damaged
  }

  /// Has somebody be recognized at a sign-in, before the batch has come to them.
  func sign(in number: Int64) { users[number]?.state = .done }

  func add(_ plan: TransferPlan) throws(AccountStoreError) -> TransferPlan? {
    if let known = plans[plan.name] { return known }
    plans[plan.name] = plan
    return nil
  }

  func transferPlans() throws(AccountStoreError) -> [TransferPlan] { plans.values.sorted { $0.name < $1.name } }

  func update(_ plan: TransferPlan) throws(AccountStoreError) -> Bool {
    try before("update")
    guard var known = plans[plan.name] else { return false }
    known.acceptedAt = plan.acceptedAt ?? known.acceptedAt
    known.triedAt = plan.triedAt ?? known.triedAt
    plans[plan.name] = known
    return true
  }

  func removePlan(_ name: String) throws(AccountStoreError) -> Bool { plans.removeValue(forKey: name) != nil }

  func add(
    _ new: [NewTransferUser], to plan: TransferPlan, knowing number: Int64?
  ) throws(AccountStoreError) -> (new: Int, last: Int64)? {
    try before("add")
    if let number, users.keys.contains(where: { $0 > number }) { return nil }
    var count = 0
    for user in new where find(user) == nil {
      let number = Int64(order.count + 1)
      order.append(number)
      users[number] = TransferUser(
        number: number, key: user.key, subject: user.subject, transferSubject: user.transferSubject, state: .waiting)
      count += 1
    }
    return (count, Int64(order.count))
  }

  func knownKeys(of users: [NewTransferUser], in plan: TransferPlan) throws(AccountStoreError) -> [String?] {
    users.map { find($0)?.key }
  }

  private func find(_ user: NewTransferUser) -> TransferUser? {
    users.values.first { known in
      user.subject == nil ? known.transferSubject == user.transferSubject : known.subject == user.subject
    }
  }

  /// Adds users whose keys are known to be new: looking for a hundred thousand takes its time.
  func fill(_ new: some Sequence<NewTransferUser>) {
    for user in new {
      let number = Int64(order.count + 1)
      order.append(number)
      users[number] = TransferUser(
        number: number, key: user.key, subject: user.subject, transferSubject: user.transferSubject, state: .waiting)
    }
  }

  func addAccounts(
    to plan: TransferPlan, after place: AccountID?, limit: Int
  ) throws(AccountStoreError) -> (new: Int, place: AccountID?) { (0, nil) }

  func noteImport(
    _ digest: SHA256Digest, into plan: TransferPlan, at time: Timestamp
  ) throws(AccountStoreError) -> Bool {
    try before("noteImport")
    return imported.insert(digest).inserted
  }

  func hasImported(_ digest: SHA256Digest, into plan: TransferPlan) throws(AccountStoreError) -> Bool {
    imported.contains(digest)
  }

  func transferUsers(
    of plan: TransferPlan, in state: TransferUser.State?, after number: Int64, limit: Int
  ) throws(AccountStoreError) -> [TransferUser] {
    try before("transferUsers")
    var found: [TransferUser] = []
    for number in order.dropFirst(Int(number)) {
      if found.count == limit { break }
      if let user = users[number], state == nil || user.state == state { found.append(user) }
    }
    return found
  }

  func record(
    _ results: [TransferResult], of plan: TransferPlan, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> [TransferUser.State]? {
    await Loop.nextTurn()
    try before("record")
    guard holder == lease.holder else { return nil }
    groups.append(results.count)
    var states: [TransferUser.State] = []
    for result in results { states.append(take(result)) }
    try after("record")
    return states
  }

  private func take(_ result: TransferResult) -> TransferUser.State {
    guard var user = users[result.number] else { return .refused }
    user.reason = nil
    switch result.answer {
    case .identifier(let identifier):
      (user.transferSubject, user.state) = (identifier, .done)
    case .account(let subject, let address, let isPrivate):
      let isTaken = takenSubjects.updateValue(result.number, forKey: subject) ?? result.number != result.number
      (user.subject, user.address, user.isPrivate) = (subject, address, isPrivate)
      user.state = isTaken ? .conflict : .done
    case .refused(let reason): (user.reason, user.state) = (reason, .refused)
    }
    users[result.number] = user
    return user.state
  }

  func note(
    _ decision: TransferDecision, of number: Int64, in plan: TransferPlan
  ) throws(AccountStoreError) -> TransferUser? {
    guard users[number]?.state == .conflict else { return nil }
    users[number]?.decision = decision
    return users[number]
  }

  private var takenSubjects: [AppleSubject: Int64] = [:]

  func census(of plan: TransferPlan) throws(AccountStoreError) -> TransferCensus {
    var census = TransferCensus()
    for user in users.values {
      switch user.state {
      case .waiting: census.waiting += 1
      case .done: census.done += 1
      case .refused: census.refused[user.reason ?? .damaged, default: 0] += 1
      case .conflict: census.conflicts[user.reason ?? .sameAccount, default: 0] += 1
      }
    }
    return census
  }
}
