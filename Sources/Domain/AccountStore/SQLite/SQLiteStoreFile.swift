import AccountEvents
import EventLoop
import Glibc
import SQLite

/// The store's database. Its calls block: they are made on the store's thread.
final class SQLiteStoreFile {
  /// Several programs write: each waits so long for the others' transactions, which take a few milliseconds.
  static let busyTimeout = Duration.seconds(20)
  static let pageSize = 4096

  let database: Database
  let keys: StoreKeys
  private let path: String
  private let ledger: SQLiteLedger
  let accounts: SQLiteAccounts
  let relays: SQLiteRelays
  let announcements: SQLiteAnnouncements
  private let erasures: SQLiteErasures
  /// Whether the log may still hold pages with what was erased: by this process, or by one that was killed.
  private var remembersErased = true
  private var nextTruncation = MonotonicTime.now

  /// Opens the database at `path`, which must have this program's version, with the key that it was made with.
  init(_ path: String, _ master: MasterKey) throws(AccountStoreError) {
    self.path = path
    database = try Self.open(path)
    try Self.expectVersion(of: database)
    keys = try Self.readKeys(of: database, master)
    let (database, keys) = (database, keys)
    (ledger, accounts, announcements, erasures) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        try SQLiteLedger(database), try SQLiteAccounts(database, keys),
        try SQLiteAnnouncements(database, keys.announcements), try SQLiteErasures(database)
      )
    }
    let accounts = accounts
    relays = try AccountStoreError.translating { () throws(SQLiteError) in try SQLiteRelays(database, accounts) }
  }

  /// How each event stands.
  func standings(
    of events: [(EventReference, AccountHash)], for consumer: ConsumerName
  ) throws(AccountStoreError) -> [EventStanding] {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try database.snapshot { () throws(SQLiteError) in
        var standings: [EventStanding] = []
        for (event, hash) in events {
          standings.append(try ledger.facts(of: event, hash, for: consumer).standing(of: event))
        }
        return standings
      }
    }
  }

  /// Judges and writes each settlement, and forgets announcements, in one transaction.
  func settle(
    _ settlements: [(Settlement, AccountHash)], forgetting numbers: [Int64], at time: Timestamp
  ) throws(AccountStoreError) -> Settled {
    var erases = false
    let settled = try write { () throws(AccountStoreError) in
      let missing = try remove(numbers)
      var outcomes: [SettledOutcome] = []
      outcomes.reserveCapacity(settlements.count)
      let last = try announcements.lastNumber()
      var number = last
      for (settlement, hash) in settlements {
        let facts = try AccountStoreError.translating { () throws(SQLiteError) in
          try ledger.facts(of: settlement.event, hash, for: settlement.consumer)
        }
        let outcome: String
        switch facts.standing(of: settlement.event) {
        case .settled:
          outcomes.append(.repeated)
          continue
        case .superseded(let cause):
          outcome = cause.outcome
          outcomes.append(.superseded(cause))
        case .open:
          guard let decided = settlement.outcome else {
            outcomes.append(.open)
            continue
          }
          outcome = decided
          for change in settlement.changes {
            try apply(change, settlement.event, hash)
            if case .eraseAccount = change { erases = true }
          }
          try AccountStoreError.translating { () throws(SQLiteError) in
            try ledger.raiseFence(settlement.event, hash, for: settlement.consumer)
          }
          if !settlement.announcements.isEmpty {
            number += 1
            try announcements.insert(
              settlement.announcements, number: number, of: settlement.consumer,
              partition: settlement.event.origin.queue)
          }
          outcomes.append(.applied(announcements: settlement.announcements.isEmpty ? nil : number))
        }
        try AccountStoreError.translating { () throws(SQLiteError) in
          try ledger.record(settlement, hash, outcome: outcome, at: time, hadAttempts: facts.attempts > 0)
        }
      }
      if number > last {
        try AccountStoreError.translating { () throws(SQLiteError) in try announcements.advance(to: number) }
      }
      return Settled(outcomes: outcomes, missing: missing)
    }
    if erases { rememberErased() }
    forgetErased()
    return settled
  }

  private func apply(
    _ change: StoreChange, _ event: EventReference, _ hash: AccountHash
  ) throws(AccountStoreError) {
    switch change {
    case .setRelay(let state): return try relays.set(state, of: event.account, hash)
    case .eraseAccount(let isFinal): return try erase(hash, ErasureFence(at: event.occurredAt, isFinal: isFinal))
    default: break
    }
    try AccountStoreError.translating { () throws(SQLiteError) in
      switch change {
      case .setRelay, .eraseAccount: break
      case .removeRelay: try relays.remove(hash)
      case .endTokens(let issuedUpTo, let clients):
        try accounts.endTokens(of: hash, issuedUpTo: issuedUpTo, clients)
      case .noteOwnRevocation(let client, let isProven):
        try accounts.note(OwnRevocation(of: client, at: event.occurredAt, isProven: isProven), hash)
      case .fenceAccount(let isFinal):
        try accounts.fence(hash, ErasureFence(at: event.occurredAt, isFinal: isFinal))
      }
    }
  }

  /// Deletes what the erasure covers, and leaves its fence.
  func erase(_ hash: AccountHash, _ erasure: ErasureFence) throws(AccountStoreError) {
    let (fence, signedInAt) = try AccountStoreError.translating { () throws(SQLiteError) in
      try accounts.fence(hash, erasure)
    }
    try delete(hash, upTo: fence.end(signedInAt: signedInAt), signedInAt)
  }

  /// Deletes what there is of the account up to `end`, nil is all; what is younger goes on under a new data key.
  func delete(_ hash: AccountHash, upTo end: Timestamp?, _ signedInAt: Timestamp?) throws(AccountStoreError) {
    let spared = try spared(of: hash, after: end, signedInAt)
    let account = spared.isEmpty ? nil : try accounts.name(of: hash)
    try AccountStoreError.translating { () throws(SQLiteError) in try accounts.remove(hash) }
    guard let account else { return }
    try accounts.begin(account, hash, with: spared)
    if let relay = spared.relay { try relays.set(relay, of: account, hash) }
  }

  /// What is younger than an erasure that reaches to `end`. Nothing that it covers is opened.
  private func spared(
    of hash: AccountHash, after end: Timestamp?, _ signedInAt: Timestamp?
  ) throws(AccountStoreError) -> SparedAccount {
    guard let end else { return SparedAccount() }
    let since = try AccountStoreError.translating { () throws(SQLiteError) in try relays.since(of: hash) }
    var spared = SparedAccount()
    if let signedInAt, signedInAt > end {
      spared.signedInAt = signedInAt
      spared.tokens = try accounts.tokens(of: hash, after: end)
    }
    if let since, since > end, case .known(let state) = try relays.knowledge(of: hash) { spared.relay = state }
    return spared
  }

  /// Counts one more attempt.
  func count(_ attempt: FailedAttempt) throws(AccountStoreError) -> Int {
    try write { () throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in try ledger.count(attempt) }
    }
  }

  /// When the first attempt failed.
  func firstAttempt(at event: EventID, by consumer: ConsumerName) throws(AccountStoreError) -> Timestamp? {
    try AccountStoreError.translating { () throws(SQLiteError) in try ledger.firstAttempt(at: event, by: consumer) }
  }

  /// The announcements that wait.
  func announcements(
    of consumer: ConsumerName, partition: Int32, limit: Int
  ) throws(AccountStoreError) -> WaitingAnnouncements {
    try announcements.read(of: consumer, partition: partition, limit: limit)
  }

  /// Forgets announcements; returns those that were not there.
  func forget(_ numbers: [Int64]) throws(AccountStoreError) -> [Int64] {
    try write { () throws(AccountStoreError) in try remove(numbers) }
  }

  private func remove(_ numbers: [Int64]) throws(AccountStoreError) -> [Int64] {
    try AccountStoreError.translating { () throws(SQLiteError) in
      var missing: [Int64] = []
      for number in numbers where try !announcements.remove(number) { missing.append(number) }
      return missing
    }
  }

  /// Adds a sign-in, and returns the tokens that are not kept.
  func recordSignIn(
    _ account: Account, _ hash: AccountHash, at time: Timestamp, _ tokens: [NewToken]
  ) throws(AccountStoreError) -> [NewToken] {
    try write { () throws(AccountStoreError) in try accounts.recordSignIn(account, hash, at: time, tokens) }
  }

  /// The account's tokens.
  func tokens(of hash: AccountHash) throws(AccountStoreError) -> [StoredToken] {
    try snapshot { () throws(AccountStoreError) in try accounts.tokens(of: hash) }
  }

  /// The authorizations that we have ended ourselves.
  func ownRevocations(of hash: AccountHash) throws(AccountStoreError) -> [OwnRevocation] {
    try AccountStoreError.translating { () throws(SQLiteError) in try accounts.ownRevocations(of: hash) }
  }

  /// What is known of mail to each.
  func relayStates(of hashes: [AccountHash]) throws(AccountStoreError) -> [RelayKnowledge] {
    try snapshot { () throws(AccountStoreError) in
      var states: [RelayKnowledge] = []
      for hash in hashes { states.append(try relays.knowledge(of: hash)) }
      return states
    }
  }

  /// The steps of erasures.
  func erasureSteps(of events: [EventID]) throws(AccountStoreError) -> [[ErasureStep]] {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try database.snapshot { () throws(SQLiteError) in
        var steps: [[ErasureStep]] = []
        for event in events { steps.append(try erasures.steps(of: event)) }
        return steps
      }
    }
  }

  /// Records steps of erasures.
  func record(_ steps: [(ErasureStep, EventID, AccountHash)]) throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        for (step, event, hash) in steps { try erasures.record(step, of: event, hash) }
      }
    }
  }

  /// What erasures have not brought to its end.
  func openErasures(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int
  ) throws(AccountStoreError) -> [OpenErasure] {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try erasures.open(by: consumer, after: place, limit: limit)
    }
  }

  /// How many erasures have failed and are not done.
  func incompleteErasures(by consumer: ConsumerName) throws(AccountStoreError) -> Int {
    try AccountStoreError.translating { () throws(SQLiteError) in try erasures.countOfIncomplete(by: consumer) }
  }

  /// How many erasures a target is at work on.
  func erasuresInProgress(by consumer: ConsumerName) throws(AccountStoreError) -> Int {
    try AccountStoreError.translating { () throws(SQLiteError) in try erasures.countInProgress(by: consumer) }
  }

  /// Closes steps of an erasure.
  func discardErasure(
    of event: EventID, target: String?, note: String, at time: Timestamp
  ) throws(AccountStoreError) -> Int {
    try write { () throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        try erasures.discard(event, target: target, note: note, at: time, in: database)
      }
    }
  }

  /// The steps retained until that time.
  func dueErasures(
    until time: Timestamp, of account: AccountHash?, after place: OpenErasure.Place?, limit: Int
  ) throws(AccountStoreError) -> [RetainedStep] {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try erasures.due(until: time, of: account, after: place, limit: limit)
    }
  }

  /// Whether it can be read, and the lock for writing be had.
  func check() throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in _ = try announcements.lastNumber() }
    forgetErased()
  }

  func write<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    try database.transaction(translating: AccountStoreError.init(committing:), body)
  }

  /// Reads as of one moment.
  func snapshot<Value>(_ body: () throws(AccountStoreError) -> Value) throws(AccountStoreError) -> Value {
    try database.snapshot(translating: AccountStoreError.init(_:), body)
  }

  /// Something was erased: the log may hold it still.
  func rememberErased() { (remembersErased, nextTruncation) = (true, .now) }

  /// How large the file is, with its log.
  func size() throws(AccountStoreError) -> Int64 {
    var size: Int64 = 0
    for name in [path, path + "-wal"] {
      var status = stat()
      if unsafe stat(name, &status) == 0 {
        size += Int64(status.st_size)
      } else if errno != ENOENT {
        throw AccountStoreError(.unavailable, "\(name): \(SystemError.current)")
      }
    }
    return size
  }

  /// The log keeps pages as they were before an erasure until it is begun anew. Where another process is in the way, a
  /// later change or check tries again, at most once a second.
  func forgetErased() {
    let now = MonotonicTime.now
    guard remembersErased, now >= nextTruncation else { return }
    nextTruncation = now + .seconds(1)
    do throws(SQLiteError) {
      remembersErased = try !database.truncateLog()
    } catch {
      // What was asked for has happened all the same. What is wrong with the disk, the next change says.
      remembersErased = true
    }
  }
}
