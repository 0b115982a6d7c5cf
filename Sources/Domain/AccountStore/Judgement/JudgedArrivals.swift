import AccountEvents
import Cryptography

/// A person of whom it is known who they are at the team that has the app now.
struct Arrival {
  /// Who that is.
  let account: Account
  /// The code of the transfer identifier.
  let identifier: [UInt8]
  /// The address at that team, and whether it is one of Apple's private relay.
  let address: RelayAddress?
  let isPrivate: Bool
  /// The team before.
  let fromTeam: TeamID
  /// The app.
  let client: ClientID
  let time: Timestamp
}

/// A user of the sending side, as the other side of a transfer finds them in the same store.
struct SentUser {
  let plan: OpenTransferPlan
  let row: TransferRow

  /// Who it is; nil where the row does not open.
  func account() throws(AccountStoreError) -> Account? {
    try plan.personIfWhole(row)?.subject.map { Account(team: plan.plan.team, subject: $0) }
  }
}

/// What a database has that bears on arrivals.
struct ArrivalFacts {
  /// Users of the sending side, by the codes of their identifiers.
  var sent: [[UInt8]: SentUser] = [:]
  /// How accounts came.
  var origins: [AccountID: AccountOrigin] = [:]
  /// When accounts were joined with others of before.
  var joinedAt: [AccountID: Timestamp] = [:]
  /// Which accounts others have become.
  var successors: [AccountID: AccountID] = [:]
  /// Accounts, and what is known of mail to them.
  var accounts: [AccountHash: RelayFacts] = [:]
  /// The apps of which a token of an account is held that is not known to be invalid, and when the newest was issued.
  var apps: [AccountHash: [ClientID: Timestamp]] = [:]

  /// The accounts that there are, and those of before.
  func concerned(_ keys: StoreKeys) -> Set<AccountHash> {
    Set(accounts.filter { $0.value.account.key != nil }.keys)
      .union(sent.values.compactMap { $0.row.account.map { keys.hash(of: $0) } })
  }
}

/// Arrivals, judged one after the other by what the database had and those before have come to: an account at the team that
/// has the app now is joined with the one at the team before, where that is in the same store. Its state of mail moves, unless
/// the person has signed in to an app that stays with that team, which needs it; and events of our own say so.
struct JudgedArrivals {
  private(set) var accounts: [AccountHash: ChangedAccount] = [:]
  /// The origins that are to be written.
  private(set) var origins: [AccountID: (origin: AccountOrigin, at: Timestamp)] = [:]
  private(set) var events: [SealedOutboxRecord] = []
  private var facts: ArrivalFacts
  private let keys: StoreKeys

  init(_ facts: ArrivalFacts, _ keys: StoreKeys) { (self.facts, self.keys) = (facts, keys) }

  /// Goes on with an account as a sign-in has changed it.
  mutating func note(_ account: ChangedAccount) { accounts[account.hash] = account }

  /// Why the arrival would make one account of two; nil where it does not.
  func conflict(_ arrival: Arrival) -> TransferRefusal? {
    guard let former = facts.sent[arrival.identifier]?.row.account else { return nil }
    let id = keys.id(of: arrival.account)
    if let known = facts.origins[id]?.former, known != former { return .sameAccount }
    if let successor = facts.successors[former], successor != id { return .otherAccount }
    return nil
  }

  /// Joins the account of an arrival without a conflict with what is known of the person. The same again changes nothing.
  mutating func join(_ arrival: Arrival) throws(AccountStoreError) {
    let id = keys.id(of: arrival.account)
    let hash = keys.hash(of: arrival.account)
    let sent = facts.sent[arrival.identifier]
    let origin = facts.origins[id]
    if let origin, sent == nil || origin.former == sent?.row.account { return }
    var account = accounts[hash] ?? ChangedAccount(hash, facts.accounts[hash]?.account ?? AccountFacts())
    // Whoever was never here, and comes from elsewhere, becomes an account with their sign-in.
    guard sent != nil || account.isThere else { return }
    try account.arrive(arrival.account, keys)
    if let sent, let former = sent.row.account {
      let formerHash = keys.hash(of: former)
      switch try mail(of: arrival, hash, from: former) {
      case .said(let state): account.takeMail(state)
      case .assumed(let state): account.setMail(state)
      case nil: break
      }
      let isLeft = (facts.apps[formerHash] ?? [:]).keys.allSatisfy { $0 == arrival.client }
      if isLeft, let known = facts.accounts[formerHash], known.relay != nil {
        var before = accounts[formerHash] ?? ChangedAccount(formerHash, known.account)
        before.forgetMail()
        accounts[formerHash] = before
      }
      facts.successors[former] = id
      if let person = try sent.account() { try announce(person, arrival, joined: id) }
    }
    accounts[hash] = account
    let joined = AccountOrigin(fromTeam: arrival.fromTeam, with: arrival.client, former: sent?.row.account)
    (facts.origins[id], origins[id]) = (joined, (joined, arrival.time))
    try announce(arrival.account, arrival, joined: id)
  }

  /// The state of mail that comes with a person.
  private enum ArrivingMail {
    /// Apple has said so of the account of before.
    case said(RelayState)
    /// Nothing is known, and it has an address: whatever Apple says counts more, whenever it happened.
    case assumed(RelayState)
  }

  /// The state of mail that comes with the person; nil where what is known stays.
  private func mail(
    of arrival: Arrival, _ hash: AccountHash, from former: AccountID
  ) throws(AccountStoreError) -> ArrivingMail? {
    let (known, before) = (try state(of: hash), try state(of: keys.hash(of: former)))
    // What was assumed when the person came there, Apple has not said.
    if let before, before.status == .disabled || before.since != facts.joinedAt[former] {
      if let known, known.since > before.since { return nil }
      return .said(
        RelayState(
          status: before.status, address: arrival.address, isPrivate: arrival.isPrivate, since: before.since))
    }
    guard known == nil, arrival.isPrivate, let address = arrival.address else { return nil }
    return .assumed(RelayState(status: .enabled, address: address, isPrivate: true, since: arrival.time))
  }

  /// What is known of mail to an account. What does not open keeps nobody from signing in.
  private func state(of hash: AccountHash) throws(AccountStoreError) -> RelayState? {
    try facts.accounts[hash]?.stateIfWhole(of: hash, with: keys)
  }

  /// Says of one of the accounts that it is part of a transfer, and of the other one nothing.
  private mutating func announce(
    _ account: Account, _ arrival: Arrival, joined id: AccountID
  ) throws(AccountStoreError) {
    let own = keys.id(of: account)
    let bytes = Array("account-transferred".utf8) + id.bytes + own.bytes + "\(arrival.time.milliseconds)".utf8
    let event = AccountEvent(
      id: .ofOurOwn("transferred", bytes), team: account.team, audience: arrival.client, subject: account.subject,
      kind: .accountTransferred, occurredAt: arrival.time, issuedAt: arrival.time)
    events.append(try keys.seal(event, of: own, at: arrival.time))
  }
}

extension EventID {
  /// The id of an event of our own that follows from what `bytes` say, the same whenever it does.
  static func ofOurOwn(_ name: String, _ bytes: [UInt8]) -> EventID {
    let digest = Base64URL.encode(Array(SHA256.digest(of: bytes).bytes.prefix(16)))
    guard let id = EventID("\(name)-\(digest)") else { preconditionFailure("base64url is of an identifier") }
    return id
  }
}

extension StoreKeys {
  /// An event of our own, with the code that vouches for it.
  func seal(
    _ event: AccountEvent, of account: AccountID, at time: Timestamp
  ) throws(AccountStoreError) -> SealedOutboxRecord {
    try seal(EventRecord(event, requestedBy: nil, because: nil, code: code), event.id, of: account, at: time)
  }
}
