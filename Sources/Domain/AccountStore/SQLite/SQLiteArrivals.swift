package import AccountEvents
import SQLite

/// The rows of accounts that came from other teams, and of users by their identifiers.
final class SQLiteArrivals {
  private let user: Statement
  private let owners: Statement
  private let origin: Statement
  private let successor: Statement
  private let predecessorLink: Statement
  private let successorLink: Statement
  private let existence: Statement
  private let accountUsers: Statement
  private let writing: Statement
  private let unlinking: Statement
  private let account: Statement

  init(_ database: Database) throws(SQLiteError) {
    user = try database.prepare(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person FROM transfer_user
      WHERE identifier = ? AND plan = ?
      """)
    owners = try database.prepare(
      "SELECT number, plan FROM transfer_user WHERE account = ? AND state <> 'conflict'")
    origin = try database.prepare("SELECT from_team, former, client FROM transferred_account WHERE account = ?")
    successor = try database.prepare("SELECT account FROM transferred_account WHERE former = ?")
    predecessorLink = try database.prepare(
      "SELECT account, former, client, at FROM transferred_account WHERE account = ? AND former IS NOT NULL")
    successorLink = try database.prepare(
      "SELECT account, former, client, at FROM transferred_account WHERE former = ?")
    existence = try database.prepare("SELECT EXISTS (SELECT 1 FROM transferred_account)")
    accountUsers = try database.prepare(
      """
      SELECT number, state, reason, account, identifier, has_signed_in, person, plan FROM transfer_user
      WHERE account = ? AND state <> 'conflict'
      """)
    unlinking = try database.prepare("DELETE FROM transferred_account WHERE former = ?")
    writing = try database.prepare(
      """
      INSERT INTO transferred_account (account, from_team, client, former, at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (account) DO UPDATE
        SET from_team = excluded.from_team, client = excluded.client, former = excluded.former, at = excluded.at
      """)
    account = try database.prepare(
      "SELECT hash, team, subject, data_key, master_key_id FROM account WHERE hash = ?")
  }

  /// The users who have an identifier.
  func users(of identifier: [UInt8], in plans: [SealedTransferPlan]) throws(SQLiteError) -> [PlannedUser] {
    var users: [PlannedUser] = []
    for plan in plans {
      let row = try user.first(identifier, plan.number) { row throws(SQLiteError) in try TransferRow(reading: row) }
      if let row { users.append(PlannedUser(plan: plan, row: row)) }
    }
    return users
  }

  /// The users who have an account, by their plans.
  func owners(of account: AccountID) throws(SQLiteError) -> [Int64: Int64] {
    var owners: [Int64: Int64] = [:]
    try self.owners.forEach(account.bytes) { row throws(SQLiteError) in owners[try row.value(1)] = try row.value(0) }
    return owners
  }

  /// How an account came.
  func origin(of account: AccountID) throws(SQLiteError) -> AccountOrigin? {
    try origin.first(account.bytes) { row throws(SQLiteError) in try AccountOrigin(reading: row, from: 0) } ?? nil
  }

  /// When an account was joined with one of before.
  func joinedAt(_ account: AccountID) throws(SQLiteError) -> Timestamp? {
    try predecessorLink.first(account.bytes) { row throws(SQLiteError) in try row.time(3) }
  }

  /// What an account has become.
  func successor(of account: AccountID) throws(SQLiteError) -> AccountID? {
    try successor.first(account.bytes) { row throws(SQLiteError) in
      guard let id = AccountID(bytes: try row.value(0)) else { throw .malformed("what an account has become") }
      return id
    }
  }

  /// Whether any account has come from another team.
  func areThere() throws(SQLiteError) -> Bool {
    let exists: Int64? = try existence.first { row throws(SQLiteError) in try row.value(0) }
    return exists == 1
  }

  /// What accounts have become, and what they were before.
  func links(_ question: LinkQuestion) throws(SQLiteError) -> AccountLinks {
    var found = AccountLinks()
    func add(_ statement: Statement, _ account: AccountID) throws(SQLiteError) {
      try statement.forEach(account.bytes) { row throws(SQLiteError) in
        guard let id = AccountID(bytes: try row.value(0)), let former = AccountID(bytes: try row.value(1)),
          let client = ClientID(try row.value(2))
        else { throw .malformed("what an account has become") }
        found.add(id, from: former, with: client, at: try row.time(3))
      }
    }
    for account in question.successors {
      var last = account
      for _ in 0..<LinkQuestion.mostSteps where found.successors[last] == nil {
        try add(successorLink, last)
        guard let next = found.successors[last]?.account else { break }
        last = next
      }
    }
    for account in question.predecessors { try add(predecessorLink, account) }
    return found
  }

  /// The users who have an account, but for those with a conflict.
  func users(as account: AccountID, in plans: [SealedTransferPlan]) throws(SQLiteError) -> [PlannedUser] {
    var users: [PlannedUser] = []
    try accountUsers.forEach(account.bytes) { row throws(SQLiteError) in
      let number: Int64 = try row.value(7)
      guard let plan = plans.first(where: { $0.number == number }) else { return }
      users.append(PlannedUser(plan: plan, row: try TransferRow(reading: row)))
    }
    return users
  }

  /// Writes how an account came.
  func write(_ origin: AccountOrigin, of account: AccountID, at time: Timestamp) throws(SQLiteError) {
    // It has come back from what it had become.
    try unlinking.run(account.bytes)
    try writing.run(
      account.bytes, origin.fromTeam.text, origin.client.text, origin.former?.bytes, time.milliseconds)
  }

  /// An account's row.
  func account(_ hash: AccountHash) throws(SQLiteError) -> SealedAccount? {
    try account.first(hash.bytes) { row throws(SQLiteError) in try SealedAccount(reading: row) }
  }
}

extension SQLiteStoreFile {
  /// What bears on the arrival of an account with an identifier that these users have, added to `facts`.
  func read(
    _ account: Account, with client: ClientID, _ identifier: [UInt8], _ users: [PlannedUser],
    into facts: inout ArrivalFacts
  ) throws(AccountStoreError) {
    let id = keys.id(of: account)
    let sent = try users.sent(to: account.team, with: client, keys)
    facts.sent[identifier] = sent
    let all = [id, sent?.row.account].compactMap(\.self)
    if keys.state.isMoving { _ = try move(Set(all.map { keys.hashing.move(of: $0) })) }
    try AccountStoreError.translating { () throws(SQLiteError) in
      facts.origins[id] = try arrivals.origin(of: id)
      if let former = sent?.row.account {
        facts.successors[former] = try arrivals.successor(of: former)
        facts.joinedAt[former] = try arrivals.joinedAt(former)
      }
      for hash in all.map({ keys.hash(of: $0) }) {
        (facts.accounts[hash], facts.apps[hash]) = (try accounts.relayFacts(of: hash), try accounts.apps(of: hash))
      }
    }
  }

  /// Writes what arrivals have come to.
  func write(_ judged: JudgedArrivals) throws(AccountStoreError) {
    try write(Array(judged.accounts.values))
    try AccountStoreError.translating { () throws(SQLiteError) in
      for account in judged.accounts.values { try ledger.raiseFences(of: account, generation: keys.generation) }
      for (id, joined) in judged.origins { try arrivals.write(joined.origin, of: id, at: joined.at) }
      for event in judged.events { try outbox.add(event) }
    }
  }

  /// Writes a sign-in with the claim of its identity token. Returns why two accounts were not joined, where they were not.
  func write(
    _ changed: ChangedAccount, of account: Account, _ claim: TransferClaim, at time: Timestamp
  ) throws(AccountStoreError) -> TransferRefusal? {
    let identifier = keys.fingerprint(of: claim.subject)
    let users = try AccountStoreError.translating { () throws(SQLiteError) in
      try arrivals.users(of: identifier, in: transfers.plans())
    }
    var facts = ClaimFacts(users: users)
    try read(account, with: claim.client, identifier, users, into: &facts.arrivals)
    facts.owners = try AccountStoreError.translating { () throws(SQLiteError) in
      try arrivals.owners(of: keys.id(of: account))
    }
    let judged = try JudgedClaim(claim, of: account, changed, facts, at: time, keys)
    try write(judged.arrivals)
    if let user = judged.user {
      try AccountStoreError.translating { () throws(SQLiteError) in try transfers.write(user.row, of: user.plan) }
    }
    return judged.conflict
  }

  /// The other accounts of the people of whom something is said.
  func relatives(of settlements: [Settlement]) throws(AccountStoreError) -> Relatives {
    guard settlements.contains(where: \.tellsRelatives) else { return Relatives() }
    let links = try AccountStoreError.translating { () throws(SQLiteError) in
      // Mostly there are none at all.
      try arrivals.areThere() ? arrivals.links(LinkQuestion(settlements, keys)) : AccountLinks()
    }
    let ids = links.accounts
    if ids.isEmpty { return Relatives() }
    if keys.state.isMoving { _ = try move(Set(ids.map { keys.hashing.move(of: $0) })) }
    var facts: [AccountID: RelativeFacts] = [:]
    for id in ids { facts[id] = try relativeFacts(of: id) }
    return try Relatives(links, facts, of: settlements, keys)
  }

  private func relativeFacts(of id: AccountID) throws(AccountStoreError) -> RelativeFacts {
    let hash = keys.hash(of: id)
    var facts = try AccountStoreError.translating { () throws(SQLiteError) in
      RelativeFacts(
        row: try arrivals.account(hash), relay: try accounts.relayFacts(of: hash), apps: try accounts.apps(of: hash))
    }
    guard facts.row == nil else { return facts }
    let users = try AccountStoreError.translating { () throws(SQLiteError) in
      try arrivals.users(as: id, in: transfers.plans())
    }
    facts.planned = try users.sentAccount(keys)
    return facts
  }
}

extension AccountOrigin {
  /// Reads how an account came from three columns; nil where it did not.
  init?(reading row: borrowing Row, from column: Int) throws(SQLiteError) {
    guard let team = try row.value(column, as: String?.self) else { return nil }
    guard let team = TeamID(team), let client = ClientID(try row.value(column + 2)) else {
      throw .malformed("the origin of an account")
    }
    let former = try row.value(column + 1, as: [UInt8]?.self)
    self.init(fromTeam: team, with: client, former: former.flatMap { AccountID(bytes: $0) })
  }
}

extension SQLiteReader {
  /// Whom an account is recognized as.
  fileprivate func recognizedTransfer(
    of account: Account, _ claim: TransferClaim
  ) throws(AccountStoreError) -> RecognizedTransfer? {
    let (users, origin) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        try arrivals.users(of: keys.fingerprint(of: claim.subject), in: transfers.plans()),
        try arrivals.origin(of: keys.id(of: account))
      )
    }
    return try users.recognized(account, with: claim.client, origin, keys)
  }

  /// Whom an account is recognized as without a claim.
  fileprivate func recognizedTransfer(
    of account: Account, with client: ClientID
  ) throws(AccountStoreError) -> RecognizedTransfer? {
    let id = keys.id(of: account)
    var (users, origin) = ([PlannedUser](), nil as AccountOrigin?)
    try AccountStoreError.translating { () throws(SQLiteError) in
      let plans = try transfers.plans()
      if plans.isEmpty { return }
      origin = try arrivals.origin(of: id)
      for account in [id, origin?.former].compactMap(\.self) { users += try arrivals.users(as: account, in: plans) }
    }
    return try users.with(client).recognized(account, with: client, origin, keys)
  }
}

extension SQLiteAccountStore {
  /// Whom a person is recognized as.
  package func recognizedTransfer(
    of account: Account, claiming claim: TransferClaim
  ) async throws(AccountStoreError) -> RecognizedTransfer? {
    try await reads.run { reader throws(AccountStoreError) in try reader.recognizedTransfer(of: account, claim) }
  }

  /// The same without a claim.
  package func recognizedTransfer(
    of account: Account, with client: ClientID
  ) async throws(AccountStoreError) -> RecognizedTransfer? {
    try await reads.run { reader throws(AccountStoreError) in
      try reader.recognizedTransfer(of: account, with: client)
    }
  }
}
