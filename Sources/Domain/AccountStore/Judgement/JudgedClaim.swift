import AccountEvents

/// A user of a plan, and the plan.
struct PlannedUser {
  let plan: SealedTransferPlan
  let row: TransferRow
}

extension [PlannedUser] {
  /// The one who comes to a team with an app. Apple has one identifier for a person, whichever app they come with: of
  /// another app's plan it is only where there is no other plan of theirs.
  func received(by team: TeamID, with client: ClientID) -> PlannedUser? {
    filter { $0.plan.plan.side == .receiving && $0.plan.plan.team == team }.one(with: client)
  }

  /// The one who goes to a team with an app; nil where their plan does not open.
  func sent(to team: TeamID, with client: ClientID, _ keys: StoreKeys) throws(AccountStoreError) -> SentUser? {
    guard let user = filter({ $0.plan.plan.isSending(to: team) }).one(with: client) else { return nil }
    return try user.openedIfWhole(keys).map { SentUser(plan: $0, row: user.row) }
  }

  /// Those of an app's plans: where Apple names nobody, another app's plan says nothing of who came to this one.
  func with(_ client: ClientID) -> [PlannedUser] { filter { $0.plan.plan.client == client } }

  /// The one of the app's first plan, or the only one there is.
  private func one(with client: ClientID) -> PlannedUser? {
    with(client).min { $0.plan.number < $1.plan.number } ?? (count == 1 ? first : nil)
  }

  /// Who an account is recognized as that came to an app with the identifier of all of these, or is what these have come to
  /// or were before; nil where it is not.
  func recognized(
    _ account: Account, with client: ClientID, _ origin: AccountOrigin?, _ keys: StoreKeys
  ) throws(AccountStoreError) -> RecognizedTransfer? {
    let user = received(by: account.team, with: client)
    if let user, user.row.account == keys.id(of: account), user.row.state == .done,
      let person = try user.openedIfWhole(keys)?.personIfWhole(user.row)
    {
      return RecognizedTransfer(key: person.key, fromTeam: user.plan.plan.otherTeam, former: origin?.former)
    }
    guard let sent = try sent(to: account.team, with: client, keys), let former = origin?.former,
      sent.row.account == former,
      let person = try sent.plan.personIfWhole(sent.row)
    else { return nil }
    return RecognizedTransfer(key: person.key, fromTeam: sent.plan.plan.team, former: former)
  }
}

extension [PlannedUser] {
  /// Who a user of a sending side is; nil where none of them says so.
  func sentAccount(_ keys: StoreKeys) throws(AccountStoreError) -> Account? {
    for user in self where user.plan.plan.side == .sending {
      guard let plan = try user.openedIfWhole(keys) else { continue }
      if let account = try SentUser(plan: plan, row: user.row).account() { return account }
    }
    return nil
  }
}

extension PlannedUser {
  /// The plan; nil where it does not open, which keeps nobody from signing in.
  fileprivate func openedIfWhole(_ keys: StoreKeys) throws(AccountStoreError) -> OpenTransferPlan? {
    do throws(AccountStoreError) {
      return try plan.open(with: keys)
    } catch {
      guard error.code == .sealBroken || error.code == .damaged else { throw error }
      return nil
    }
  }
}

/// What a database has that bears on the claim of an identity token.
struct ClaimFacts {
  /// Whoever has the identifier.
  var users: [PlannedUser] = []
  /// The users who have the account, by their plans, but for those with a conflict.
  var owners: [Int64: Int64] = [:]
  /// What bears on the account that the person has now.
  var arrivals = ArrivalFacts()
}

/// The claim of an identity token that somebody comes from another team, judged within the sign-in.
struct JudgedClaim {
  /// The user of the receiving side as they are to be written, and their plan's number.
  private(set) var user: (row: TransferRow, plan: Int64)?
  /// Why nothing was joined now, where two accounts would have become one.
  private(set) var conflict: TransferRefusal?
  /// What becomes of the accounts: the one that has signed in, and that of before.
  private(set) var arrivals: JudgedArrivals

  /// Judges a claim; `account` is as the sign-in leaves it.
  init(
    _ claim: TransferClaim, of person: Account, _ account: ChangedAccount, _ facts: ClaimFacts, at time: Timestamp,
    _ keys: StoreKeys
  ) throws(AccountStoreError) {
    let identifier = keys.fingerprint(of: claim.subject)
    arrivals = JudgedArrivals(facts.arrivals, keys)
    arrivals.note(account)
    func coming(from team: TeamID, with client: ClientID) -> Arrival {
      Arrival(
        account: person, identifier: identifier, address: claim.address, isPrivate: claim.isPrivate, fromTeam: team,
        client: client, time: time)
    }
    guard let received = facts.users.received(by: person.team, with: claim.client) else {
      // The list of the team before has not come yet, and need not: the person is in this very store.
      guard let plan = facts.arrivals.sent[identifier]?.plan.plan else { return }
      let arrival = coming(from: plan.team, with: plan.client)
      conflict = arrivals.conflict(arrival)
      if conflict == nil { try arrivals.join(arrival) }
      return
    }
    let plan = received.plan.plan
    let arrival = coming(from: plan.otherTeam, with: plan.client)
    var row = received.row
    let isOwn = row.account == keys.id(of: person)
    switch row.state {
    case .conflict: return
    case .done:
      row.reason = isOwn ? arrivals.conflict(arrival) : .otherAccount
      row.state = row.reason == nil ? .done : .conflict
    case .waiting, .refused:
      guard let opened = try received.openedIfWhole(keys), var user = try opened.personIfWhole(row) else { return }
      (user.subject, user.address, user.isPrivate) = (person.subject, claim.address, claim.isPrivate)
      try opened.seal(user, into: &row)
      row.reason = facts.owners[received.plan.number] == nil ? arrivals.conflict(arrival) : .sameAccount
      row.state = row.reason == nil ? .done : .conflict
    }
    conflict = row.reason
    if row.state == .done {
      row.hasSignedIn = true
      try arrivals.join(arrival)
    }
    user = (row, received.plan.number)
  }
}

extension TransferPlan {
  /// Whether users go to that team by it.
  func isSending(to team: TeamID) -> Bool { side == .sending && otherTeam == team }
}
