package import AccountEvents

/// What an operator does with a store, whichever database holds it.
package protocol AccountStoreAdministration: Sendable {
  /// Where it is, for people; no passwords.
  var place: String { get }

  /// Makes the store, wholly or not at all; false where there is one, which is left alone.
  func begin() async throws(AccountStoreError) -> Bool

  /// Brings the store to this program's version: wholly or not at all. Makes none: where there is none, a volume may not be
  /// mounted, and a second store would know nothing of what the first one knows. Running programs need not be stopped for a
  /// step that they know.
  func migrate() async throws(AccountStoreError) -> StoreMigration

  /// Reads everything: the database by its own means, and every sealed value under its key and in its place. Changes
  /// nothing, and programs may run meanwhile.
  func verify(
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> StoreReport

  /// Says what the store holds of an account. Changes nothing, and programs may run meanwhile.
  func holdings(of account: Account) async throws(AccountStoreError) -> AccountHoldings

  /// Wraps with the master key what the one before has wrapped, some accounts in each transaction: programs that have both
  /// may run meanwhile. Begun anew it goes on where it was.
  func rotateKey(
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> KeyRotation

  /// Replaces the key that accounts are hashed with: adds `key` to those that the store has, and moves what is known of each
  /// account to its hash under it, some accounts in each transaction. Programs may run meanwhile: they find out by
  /// themselves. Begun anew it goes on where it was, with the same key or with none; another one is refused until then.
  func rotateHashKey(
    to key: HashKey?, progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> HashRotation

  /// Forgets what was settled before `time`, some rows in each transaction: programs may run meanwhile. What is never
  /// forgotten: the fences, who is erased, an erasure that is not at its end or that has retained something. `eraser` is
  /// the consumer that erasures are of. A rehearsal only counts. Begun anew it goes on where it was.
  ///
  /// Whoever calls has to know that no record of what was settled before `time` can be read again.
  func prune(
    before time: Timestamp, eraser: ConsumerName, isRehearsal: Bool,
    progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(AccountStoreError) -> StorePruning

  /// Writes a copy, as of one moment, into a new file at `path` that only this user can read, and verifies it. There is
  /// no file of that name before it is whole.
  func backUp(
    to path: String, progress: @escaping @Sendable (StoreProgress) -> Void
  ) async throws(StoreBackupError) -> StoreReport
}

/// Why there is no backup.
package enum StoreBackupError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The store cannot be read, or its copy would be damaged.
  case store(AccountStoreError)
  /// The new file cannot be made, for this reason.
  case file(_ path: String, _ reason: String)

  /// Says which of the two it is, and why.
  package var description: String {
    switch self {
    case .store(let error): "\(error)"
    case .file(let path, let reason): "\(path): \(reason)"
    }
  }
}

/// What a migration has done.
package struct StoreMigration: Sendable, Equatable {
  /// The version before.
  package let from: Int
  /// The version now.
  package let to: Int

  /// A migration from one version to another.
  package init(from: Int, to: Int) { (self.from, self.to) = (from, to) }
}

/// What a rotation of the master key has done.
package struct KeyRotation: Sendable, Equatable {
  /// Accounts whose data key was wrapped anew.
  package var accounts = 0
  /// Accounts, waiting events and plans that a program which still wraps with the former key has added meanwhile.
  package var left = 0

  /// Nothing done yet.
  package init() {}

  /// How many accounts are wrapped anew in one transaction: others wait for it.
  static let page: Int64 = 500
}

/// What a rotation of the hashing key has done.
package struct HashRotation: Sendable, Equatable {
  /// The key that all accounts are hashed with by now.
  package let key: HashKeyID
  /// What outcomes name it; nil for a store's first.
  package let name: HashKeyID?
  /// How many rows bore a former hash when it began or went on; none where all was done before.
  package let rows: Int

  /// A rotation that has come to its end.
  init(to hashing: HashChain, rows: Int = 0) {
    (key, name, self.rows) = (hashing.newestID, hashing.newest, rows)
  }

  /// How many accounts or rows are moved in one transaction: others wait for it.
  static let page: Int64 = 500
}

/// How far something long is.
package struct StoreProgress: Sendable, Equatable {
  /// What is being done.
  package enum Stage: String, Sendable {
    /// The database is copied, page by page.
    case copying
    /// The database checks itself; how far it is, it does not say.
    case checking
    /// What is sealed is opened: accounts, then users of transfers, one by one.
    case opening
    /// Data keys are wrapped anew, account by account.
    case wrapping
    /// Rows are moved to hashes under another key.
    case moving
    /// Rows that nobody asks for any more are counted; how many there are is what comes of it.
    case counting
    /// They are deleted.
    case pruning
    /// Outcomes are read from Kafka, record by record.
    case reading
  }

  /// What is being done.
  package let stage: Stage
  /// How much is done.
  package let done: Int
  /// How much there is.
  package let total: Int

  /// A stage from its parts.
  package init(_ stage: Stage, done: Int, total: Int) { (self.stage, self.done, self.total) = (stage, done, total) }
}

/// What reading everything has found.
package struct StoreReport: Sendable, Equatable {
  /// Accounts of which something is kept.
  package var accounts = 0
  /// Tokens that are held.
  package var tokens = 0
  /// Accounts of which it is known whether mail may be sent.
  package var relays = 0
  /// Events that consumers have settled, each by each.
  package var settled = 0
  /// Users of transfers between teams, of all plans.
  package var transferUsers = 0
  /// Whether a rotation of the hashing key is under way.
  package var isMoving = false
  /// What is wrong, at most a hundred of them. They name accounts by their hashes.
  package var findings: [String] = []

  /// Nothing found yet.
  package init() {}

  /// Adds what is wrong.
  mutating func note(_ finding: String) { if findings.count < 100 { findings.append(finding) } }
}
