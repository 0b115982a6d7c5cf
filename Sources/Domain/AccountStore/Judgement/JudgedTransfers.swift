import AccountEvents

/// What a database has that bears on answers about users of a plan.
struct TransferFacts {
  /// Their rows; none of a user who is gone.
  var rows: [Int64: TransferRow] = [:]
  /// Which users have transfer identifiers, by their codes.
  var identifiers: [[UInt8]: Int64] = [:]
  /// Which users have accounts, but for those with a conflict.
  var accounts: [AccountID: Int64] = [:]
  /// What bears on the accounts that Apple named.
  var arrivals = ArrivalFacts()
}

/// Answers of Apple's about users of a plan, judged one after the other: each by what the database had, and by what those
/// before it have come to.
struct JudgedTransfers {
  private(set) var states: [TransferUser.State] = []
  /// The rows that are to be written.
  private(set) var changed: [Int64: TransferRow] = [:]
  /// What becomes of the accounts.
  private(set) var arrivals: JudgedArrivals
  private var facts: TransferFacts
  private let plan: OpenTransferPlan
  private let time: Timestamp

  init(
    _ results: [TransferResult], _ facts: TransferFacts, of plan: OpenTransferPlan, at time: Timestamp
  ) throws(AccountStoreError) {
    (self.facts, self.plan, self.time) = (facts, plan, time)
    arrivals = JudgedArrivals(facts.arrivals, plan.keys)
    states.reserveCapacity(results.count)
    for result in results {
      // Of somebody who was erased meanwhile nothing comes.
      guard let row = changed[result.number] ?? facts.rows[result.number] else {
        states.append(.refused)
        continue
      }
      states.append(try judge(result.answer, row))
    }
  }

  /// What becomes of a user by an answer.
  private mutating func judge(
    _ answer: TransferResult.Answer, _ row: TransferRow
  ) throws(AccountStoreError) -> TransferUser.State {
    switch answer {
    case .refused(let reason):
      guard row.state == .waiting || row.state == .refused else { return row.state }
      return settle(row, .refused, reason)
    case .identifier(let identifier):
      guard row.state == .waiting || row.state == .refused else { return row.state }
      guard var person = try plan.personIfWhole(row) else { return settle(row, .refused, .damaged) }
      let code = plan.keys.fingerprint(of: identifier)
      guard identifier.text != person.subject?.text, facts.identifiers[code] == nil else {
        return settle(row, .refused, .uselessAnswer)
      }
      facts.identifiers[code] = row.number
      person.transferSubject = identifier
      return try settle(row, .done, as: person)
    case .account(let subject, let address, let isPrivate):
      return try judge(subject, address, isPrivate: isPrivate, row)
    }
  }

  private mutating func judge(
    _ subject: AppleSubject, _ address: RelayAddress?, isPrivate: Bool, _ row: TransferRow
  ) throws(AccountStoreError) -> TransferUser.State {
    let account = plan.keys.id(of: Account(team: plan.plan.team, subject: subject))
    switch row.state {
    case .conflict: return .conflict
    case .done: return row.account == account ? .done : settle(row, .conflict, .otherAccount)
    case .waiting, .refused: break
    }
    // Whoever was erased at our team stays so until they sign in.
    if facts.arrivals.accounts[plan.keys.hash(of: account)]?.account.isErased == true {
      return settle(row, .refused, .consentWithdrawn)
    }
    guard var person = try plan.personIfWhole(row) else { return settle(row, .refused, .damaged) }
    guard subject.text != person.transferSubject?.text else { return settle(row, .refused, .uselessAnswer) }
    (person.subject, person.address, person.isPrivate) = (subject, address, isPrivate)
    if facts.accounts[account] != nil { return try settle(row, .conflict, .sameAccount, as: person) }
    if let identifier = row.identifier {
      let arrival = Arrival(
        account: Account(team: plan.plan.team, subject: subject), identifier: identifier, address: address,
        isPrivate: isPrivate, fromTeam: plan.plan.otherTeam, client: plan.plan.client, time: time)
      if let conflict = arrivals.conflict(arrival) { return try settle(row, .conflict, conflict, as: person) }
      try arrivals.join(arrival)
    }
    facts.accounts[account] = row.number
    return try settle(row, .done, as: person)
  }

  private mutating func settle(
    _ row: TransferRow, _ state: TransferUser.State, _ reason: TransferRefusal? = nil
  ) -> TransferUser.State {
    if row.state == state, row.reason == reason { return state }
    var row = row
    (row.state, row.reason) = (state, reason)
    changed[row.number] = row
    return state
  }

  private mutating func settle(
    _ row: TransferRow, _ state: TransferUser.State, _ reason: TransferRefusal? = nil, as person: TransferPerson
  ) throws(AccountStoreError) -> TransferUser.State {
    var row = row
    (row.state, row.reason) = (state, reason)
    try plan.seal(person, into: &row)
    changed[row.number] = row
    return state
  }
}

extension [TransferResult] {
  /// Throws where one is not of that side.
  func expect(_ side: TransferPlan.Side) throws(AccountStoreError) {
    for result in self {
      switch (result.answer, side) {
      case (.refused, _), (.identifier, .sending), (.account, .receiving): break
      case (.identifier, .receiving), (.account, .sending): throw AccountStoreError.otherSide
      }
    }
  }

  /// The codes of the identifiers that Apple gave.
  func identifiers(_ keys: StoreKeys) -> [[UInt8]] {
    compactMap { if case .identifier(let identifier) = $0.answer { keys.fingerprint(of: identifier) } else { nil } }
  }

  /// The accounts that Apple named.
  func accounts(of team: TeamID) -> [Account] {
    compactMap { result in
      if case .account(let subject, _, _) = result.answer { Account(team: team, subject: subject) } else { nil }
    }
  }
}

extension NewTransferUser {
  /// Who it is at the plan's team, which is known on the sending side alone. Throws where it is of the other side.
  func account(of plan: TransferPlan) throws(AccountStoreError) -> Account? {
    guard (subject != nil) == (plan.side == .sending), (transferSubject != nil) == (plan.side == .receiving) else {
      throw AccountStoreError.otherSide
    }
    return subject.map { Account(team: plan.team, subject: $0) }
  }
}
