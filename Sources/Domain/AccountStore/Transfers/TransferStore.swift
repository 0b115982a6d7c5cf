package import AccountEvents
package import Cryptography
package import EventLoop

/// What is kept of transfers of users: plans and their users, sealed, until the plan is removed or a person is erased.
///
/// A call that throws has changed nothing, unless the error is `.uncertain`; then the same call again finds out. Who does
/// the work of a plan holds the lease `TransferPlan.lease`; whatever it writes names it.
@Loop
package protocol TransferStore: AnyObject, Sendable {
  /// Adds a plan. Returns the one of that name that is there already, or nil.
  func add(_ plan: TransferPlan) async throws(AccountStoreError) -> TransferPlan?

  /// All plans, by name.
  func transferPlans() async throws(AccountStoreError) -> [TransferPlan]

  /// Notes when the transfer was accepted, and when a user was tried. False where there is no such plan.
  func update(_ plan: TransferPlan) async throws(AccountStoreError) -> Bool

  /// Removes a plan with all that is kept of its users. What became of their accounts stays. False where there is none.
  ///
  /// First its data key is shredded, with which nothing of its users can be read any more; then their rows go, some thousand
  /// in a transaction. Whoever is killed in between leaves a plan that `isBeingRemoved`: the same call again ends it, and
  /// every other one but `transferPlans` and `census` throws.
  func removePlan(_ name: String) async throws(AccountStoreError) -> Bool

  /// Adds users to a plan, in one transaction. Who is there already stays as they are: the same subject or the same
  /// transfer identifier; and who was erased and has not signed in since is not added. Returns how many are new, and the
  /// number of the plan's last user. Where `number` is given and the plan has a user behind it, nobody is added, and nil is
  /// returned: what the caller concluded from the users up to there may not hold.
  func add(
    _ users: [NewTransferUser], to plan: TransferPlan, knowing number: Int64?
  ) async throws(AccountStoreError) -> (new: Int, last: Int64)?

  /// The key of each of these users in the plan, in their order; nil of one who is not there, or whose row does not open.
  func knownKeys(of users: [NewTransferUser], in plan: TransferPlan) async throws(AccountStoreError) -> [String?]

  /// Adds accounts of the plan's team from the store itself, `limit` at most, those behind `place` alone; nil is the
  /// beginning. Their key is the account's id. Returns how many are new, and where to go on; nil at the end. Throws while
  /// the hashing key is being replaced.
  func addAccounts(
    to plan: TransferPlan, after place: AccountID?, limit: Int
  ) async throws(AccountStoreError) -> (new: Int, place: AccountID?)

  /// Notes that a file was imported into the plan. False where it was before.
  func noteImport(
    _ digest: SHA256Digest, into plan: TransferPlan, at time: Timestamp
  ) async throws(AccountStoreError) -> Bool

  /// Whether a file was imported into the plan.
  func hasImported(_ digest: SHA256Digest, into plan: TransferPlan) async throws(AccountStoreError) -> Bool

  /// Users in that state behind `number`, in their order, `limit` at most; nil is every state. One whose row does not open
  /// has no key, and the reason `damaged`.
  func transferUsers(
    of plan: TransferPlan, in state: TransferUser.State?, after number: Int64, limit: Int
  ) async throws(AccountStoreError) -> [TransferUser]

  /// Writes what Apple said, in one transaction, if the lease is still the holder's, and renews it; nil where it is
  /// somebody else's. Returns how each user stands then, in the order of the results. Of a user whom Apple was asked about
  /// before, the same answer changes nothing. One who was erased meanwhile counts as refused, and nothing is written. On the receiving side an account is joined
  /// with what is known of the person at the other team, if that is in this store, as `recordSignIn` does.
  func record(
    _ results: [TransferResult], of plan: TransferPlan, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> [TransferUser.State]?

  /// Notes what a person has decided about a conflict, in the place of what was decided before. Returns the user as they
  /// stand then; nil where there is none of that number in conflict.
  func note(
    _ decision: TransferDecision, of number: Int64, in plan: TransferPlan
  ) async throws(AccountStoreError) -> TransferUser?

  /// How far a plan is: exact, and counted anew each time, a quarter of a second for a million users. Ask at the beginning
  /// and at the end, and count in between what `record` returns.
  func census(of plan: TransferPlan) async throws(AccountStoreError) -> TransferCensus
}

extension TransferPlan {
  /// The name of the lease of whoever does the work of the plan.
  package var lease: String { Self.lease(of: name) }

  /// The same, by the plan's name.
  static func lease(of name: String) -> String { "transfer-\(name)" }

  /// Whether it is that plan, and not another one that got its name later.
  func isSame(as other: TransferPlan) -> Bool {
    (name, side, team, otherTeam) == (other.name, other.side, other.team, other.otherTeam)
      && client == other.client && createdAt == other.createdAt
  }
}

extension TransferStore {
  /// Adds users whoever is there already, and returns how many are new.
  package func add(_ users: [NewTransferUser], to plan: TransferPlan) async throws(AccountStoreError) -> Int {
    try await add(users, to: plan, knowing: nil)?.new ?? 0
  }
}
