package import AccountEvents
package import Cryptography
import SQLite

extension SQLiteStoreFile {
  /// The plan as it is kept; throws where there is none, or another one of that name.
  fileprivate func row(of plan: TransferPlan) throws(AccountStoreError) -> SealedTransferPlan {
    let found = try countedRow(of: plan)
    guard !found.plan.isBeingRemoved else { throw .beingRemoved(plan) }
    return found
  }

  /// The same also where it is being removed.
  private func countedRow(of plan: TransferPlan) throws(AccountStoreError) -> SealedTransferPlan {
    let found = try AccountStoreError.translating { () throws(SQLiteError) in try transfers.plan(named: plan.name) }
    guard let found, found.plan.isSame(as: plan) else { throw .noPlan(plan) }
    return found
  }

  fileprivate func add(_ plan: TransferPlan) throws(AccountStoreError) -> TransferPlan? {
    try write { () throws(AccountStoreError) in
      let row = try keys.seal(plan)
      return try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.add(row) ? nil : try transfers.plan(named: plan.name)?.plan
      }
    }
  }

  /// Adds users that are new, unless the plan has some that the caller does not know of.
  fileprivate func add(
    _ users: [NewTransferUser], to plan: TransferPlan, knowing number: Int64?
  ) throws(AccountStoreError) -> (new: Int, last: Int64)? {
    try write { () throws(AccountStoreError) -> (new: Int, last: Int64)? in
      let plan = try row(of: plan).open(with: keys)
      if let number {
        let unknown = try AccountStoreError.translating { () throws(SQLiteError) in
          try transfers.users(of: plan.row.number, in: nil, after: number, limit: 1)
        }
        if !unknown.isEmpty { return nil }
      }
      let accounts = try users.map { user throws(AccountStoreError) in try user.account(of: plan.plan) }
      try move(accounts.compactMap(\.self))
      var people: [TransferPerson] = []
      for (user, account) in zip(users, accounts) {
        if let account, try isErased(account) { continue }
        people.append(TransferPerson(user))
      }
      let new = try add(people, to: plan)
      return (new, plan.row.lastUser + Int64(new))
    }
  }

  fileprivate func knownKeys(
    of users: [NewTransferUser], in plan: TransferPlan
  ) throws(AccountStoreError) -> [String?] {
    try snapshot { () throws(AccountStoreError) -> [String?] in
      let plan = try row(of: plan).open(with: keys)
      return try users.map { user throws(AccountStoreError) -> String? in
        let account = try user.account(of: plan.plan).map { keys.id(of: $0) }
        let identifier = user.transferSubject.map { keys.fingerprint(of: $0) }
        let row = try AccountStoreError.translating { () throws(SQLiteError) in
          try transfers.user(account, identifier, in: plan.row.number)
        }
        guard let row else { return nil }
        return try plan.personIfWhole(row)?.key
      }
    }
  }

  private func isErased(_ account: Account) throws(AccountStoreError) -> Bool {
    try AccountStoreError.translating { () throws(SQLiteError) in
      try accounts.facts(of: keys.hash(of: account)).isErased
    }
  }

  private func add(
    _ people: [TransferPerson], to plan: OpenTransferPlan, _ state: TransferUser.State = .waiting
  ) throws(AccountStoreError) -> Int {
    let first = plan.row.lastUser
    var last = first
    for person in people {
      let row = try plan.row(of: person, last + 1, state)
      let isNew = try AccountStoreError.translating { () throws(SQLiteError) in
        if try transfers.knows(row.account, row.identifier, in: plan.row.number) { return false }
        try transfers.add(row, to: plan.row.number)
        return true
      }
      if isNew { last += 1 }
    }
    if last > first {
      try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.note(lastUser: last, of: plan.row.number)
      }
    }
    return Int(last - first)
  }

  fileprivate func addAccounts(
    to plan: TransferPlan, after place: AccountID?, limit: Int
  ) throws(AccountStoreError) -> (new: Int, place: AccountID?) {
    try write { () throws(AccountStoreError) in
      // In the order of their hashes, which has to be one.
      guard !keys.state.isMoving else { throw .movingAccounts }
      let plan = try row(of: plan).open(with: keys)
      let rows = try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.accounts(
          of: plan.plan.team, after: place.map { keys.hash(of: $0).bytes } ?? [], limit: limit)
      }
      let page = try AccountPage(opening: rows, limit: limit, keys)
      return (try add(page.people, to: plan), page.end)
    }
  }

  fileprivate func record(
    _ results: [TransferResult], of plan: TransferPlan, under lease: Lease, at time: Timestamp
  ) throws(AccountStoreError) -> [TransferUser.State]? {
    try results.expect(plan.side)
    return try write { () throws(AccountStoreError) in
      let isHeld = try AccountStoreError.translating { () throws(SQLiteError) in
        try validation.renew(lease.renewed(at: time))
      }
      guard isHeld else { return nil }
      let plan = try row(of: plan).open(with: keys)
      var (facts, plans) = try AccountStoreError.translating { () throws(SQLiteError) in
        (try transfers.facts(of: results, in: plan.row, keys), try transfers.plans())
      }
      plans.removeAll { !$0.plan.isSending(to: plan.plan.team) }
      for result in results {
        guard let identifier = facts.rows[result.number]?.identifier,
          let account = [result].accounts(of: plan.plan.team).first
        else { continue }
        let users = try AccountStoreError.translating { () throws(SQLiteError) in
          try arrivals.users(of: identifier, in: plans)
        }
        try read(account, with: plan.plan.client, identifier, users, into: &facts.arrivals)
      }
      let judged = try JudgedTransfers(results, facts, of: plan, at: time)
      try write(judged.arrivals)
      try AccountStoreError.translating { () throws(SQLiteError) in
        for row in judged.changed.values { try transfers.write(row, of: plan.row.number) }
      }
      return judged.states
    }
  }

  fileprivate func note(
    _ decision: TransferDecision, of number: Int64, in plan: TransferPlan
  ) throws(AccountStoreError) -> TransferUser? {
    try write { () throws(AccountStoreError) -> TransferUser? in
      let plan = try row(of: plan).open(with: keys)
      let known = try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.user(number, of: plan.row.number)
      }
      guard let known, let decided = try plan.row(known, with: decision) else { return nil }
      try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.write(decided, of: plan.row.number)
      }
      return try plan.users([decided]).first
    }
  }

  fileprivate func transferUsers(
    of plan: TransferPlan, in state: TransferUser.State?, after number: Int64, limit: Int
  ) throws(AccountStoreError) -> [TransferUser] {
    try snapshot { () throws(AccountStoreError) in
      let plan = try row(of: plan).open(with: keys)
      let rows = try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.users(of: plan.row.number, in: state, after: number, limit: limit)
      }
      return try plan.users(rows)
    }
  }

  fileprivate func noteImport(
    _ digest: SHA256Digest, into plan: TransferPlan, at time: Timestamp
  ) throws(AccountStoreError) -> Bool {
    try write { () throws(AccountStoreError) in
      let number = try row(of: plan).number
      return try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.note(digest, into: number, at: time)
      }
    }
  }

  fileprivate func hasImported(
    _ digest: SHA256Digest, into plan: TransferPlan
  ) throws(AccountStoreError) -> Bool {
    try snapshot { () throws(AccountStoreError) in
      let number = try row(of: plan).number
      return try AccountStoreError.translating { () throws(SQLiteError) in
        try transfers.hasNoted(digest, into: number)
      }
    }
  }

  fileprivate func census(of plan: TransferPlan) throws(AccountStoreError) -> TransferCensus {
    try snapshot { () throws(AccountStoreError) in
      let number = try countedRow(of: plan).number
      return try AccountStoreError.translating { () throws(SQLiteError) in try transfers.census(of: number) }
    }
  }

  /// Removes what transfers keep of those who are erased.
  func removeTransfers(of changed: [ChangedAccount]) throws(AccountStoreError) {
    let erased = changed.filter(\.isErased)
    if erased.isEmpty { return }
    try AccountStoreError.translating { () throws(SQLiteError) in
      // Mostly no app has changed teams: to see that once takes less than to look for each.
      guard try transfers.keepAnything() else { return }
      var ids = erased.compactMap(\.erasedID)
      let hashes = Set(erased.filter { $0.erasedID == nil }.map(\.hash))
      if !hashes.isEmpty { ids += try transfers.accounts(under: hashes, keys) }
      var hasRemoved = false
      for id in ids where try transfers.remove(id) { hasRemoved = true }
      if hasRemoved { rememberErased() }
    }
  }
}

extension SQLiteAccountStore {
  /// Adds a plan.
  package func add(_ plan: TransferPlan) async throws(AccountStoreError) -> TransferPlan? {
    try await writer.run { file throws(AccountStoreError) in try file.add(plan) }
  }

  /// All plans.
  package func transferPlans() async throws(AccountStoreError) -> [TransferPlan] {
    try await writer.run { file throws(AccountStoreError) in
      try file.readRows { () throws(SQLiteError) in try file.transfers.allPlans().map(\.plan) }
    }
  }

  /// Notes what has become known of a plan.
  package func update(_ plan: TransferPlan) async throws(AccountStoreError) -> Bool {
    try await writer.run { file throws(AccountStoreError) in
      try file.writeRows { () throws(SQLiteError) in try file.transfers.update(plan) }
    }
  }

  /// Removes a plan, its data key and its users, from the log of the file, too.
  package func removePlan(_ name: String) async throws(AccountStoreError) -> Bool {
    let number = try await writer.run { [readers] file throws(AccountStoreError) in
      let number = try file.writeRows { () throws(SQLiteError) in
        try file.transfers.shred(name, lease: TransferPlan.lease(of: name))
      }
      if number != nil {
        file.rememberErased()
        file.forgetErased(holdingOff: readers)
      }
      return number
    }
    guard let number else { return false }
    var isLeft = true
    while isLeft {
      isLeft = try await writer.run { [readers] file throws(AccountStoreError) in
        let isLeft = try file.writeRows { () throws(SQLiteError) in try file.transfers.removeUsers(of: number) }
        file.rememberErased()
        file.forgetErased(holdingOff: readers)
        return isLeft
      }
    }
    return true
  }

  /// Adds users.
  package func add(
    _ users: [NewTransferUser], to plan: TransferPlan, knowing number: Int64?
  ) async throws(AccountStoreError) -> (new: Int, last: Int64)? {
    try await writer.run { file throws(AccountStoreError) in try file.add(users, to: plan, knowing: number) }
  }

  /// The keys of users in a plan.
  package func knownKeys(
    of users: [NewTransferUser], in plan: TransferPlan
  ) async throws(AccountStoreError) -> [String?] {
    try await writer.run { file throws(AccountStoreError) in try file.knownKeys(of: users, in: plan) }
  }

  /// Adds a page of the plan's team's accounts.
  package func addAccounts(
    to plan: TransferPlan, after place: AccountID?, limit: Int
  ) async throws(AccountStoreError) -> (new: Int, place: AccountID?) {
    try await writer.run { file throws(AccountStoreError) in
      try file.addAccounts(to: plan, after: place, limit: limit)
    }
  }

  /// Notes that a file came in.
  package func noteImport(
    _ digest: SHA256Digest, into plan: TransferPlan, at time: Timestamp
  ) async throws(AccountStoreError) -> Bool {
    try await writer.run { file throws(AccountStoreError) in try file.noteImport(digest, into: plan, at: time) }
  }

  /// Whether a file came in.
  package func hasImported(
    _ digest: SHA256Digest, into plan: TransferPlan
  ) async throws(AccountStoreError) -> Bool {
    try await writer.run { file throws(AccountStoreError) in try file.hasImported(digest, into: plan) }
  }

  /// A page of users.
  package func transferUsers(
    of plan: TransferPlan, in state: TransferUser.State?, after number: Int64, limit: Int
  ) async throws(AccountStoreError) -> [TransferUser] {
    try await writer.run { file throws(AccountStoreError) in
      try file.transferUsers(of: plan, in: state, after: number, limit: limit)
    }
  }

  /// Writes what Apple said.
  package func record(
    _ results: [TransferResult], of plan: TransferPlan, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> [TransferUser.State]? {
    try await writer.run { file throws(AccountStoreError) in
      try file.record(results, of: plan, under: lease, at: time)
    }
  }

  /// Notes what was decided about a conflict.
  package func note(
    _ decision: TransferDecision, of number: Int64, in plan: TransferPlan
  ) async throws(AccountStoreError) -> TransferUser? {
    try await writer.run { file throws(AccountStoreError) in try file.note(decision, of: number, in: plan) }
  }

  /// How far a plan is.
  package func census(of plan: TransferPlan) async throws(AccountStoreError) -> TransferCensus {
    try await writer.run { file throws(AccountStoreError) in try file.census(of: plan) }
  }
}
