import AccountEvents
import Cryptography

/// An account as the changes of a transaction leave it, one after the other, and what is to be written for that.
struct ChangedAccount {
  /// What becomes of its state of mail.
  enum Relay {
    case set(RelayState)
    case removed
  }

  /// A token that is to be written.
  struct TokenRow {
    let token: StoredToken
    let fingerprint: [UInt8]
    let value: [UInt8]
  }

  /// What an applied event makes void: what is no heavier, and no later.
  struct Fence: Equatable {
    let consumer: ConsumerName
    let severity: Int
    var at: Timestamp
    var tie: Int
    /// Whether it is higher than the one of this severity that the database has: an event that covers less than its own
    /// severity may be older than that.
    var isHighest: Bool
  }

  let hash: AccountHash
  /// As it stands now.
  private(set) var facts: AccountFacts
  /// What the database has of it beside its row, where it may be erased.
  private let kept: KeptAccount?
  private var cipher: AES256GCM?

  // What is to be written, in this order.
  private(set) var isDeleted = false
  private(set) var isFenced = false
  /// Whether it is erased, be it that there is no row.
  private(set) var isErased = false
  /// Of an erased one its id; nil where its hash alone is known.
  private(set) var erasedID: AccountID?
  private(set) var made: SealedAccount?
  /// Of a row that is there.
  private(set) var signIn: Timestamp?
  private var tokens: [StoredToken] = []
  /// The apps that a sign-in has brought a refresh token of: of older ones few are kept.
  private(set) var signedInTo: Set<ClientID> = []
  private(set) var ownRevocations: [ClientID: OwnRevocation] = [:]
  private(set) var endedAuthorizations: [String: Timestamp] = [:]
  private(set) var relay: Relay?
  private(set) var fences: [Fence] = []

  /// An account as the database has it; `kept` of one that may be erased.
  init(_ hash: AccountHash, _ facts: AccountFacts, kept: KeptAccount? = nil) {
    (self.hash, self.facts, self.kept) = (hash, facts, kept)
  }

  // MARK: Changes

  /// Changes it as an event does.
  mutating func apply(
    _ change: StoreChange, _ event: EventReference, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    switch change {
    case .setRelay(let state):
      try keep(event.account, keys)
      relay = .set(state)
    case .removeRelay: relay = .removed
    case .endTokens(let issuedUpTo, let clients): endTokens(issuedUpTo: issuedUpTo, of: clients)
    case .noteOwnRevocation(let client, let isProven):
      note(OwnRevocation(of: client, at: event.occurredAt, isProven: isProven))
    case .eraseAccount(let isFinal):
      (isErased, erasedID) = (true, keys.id(of: event.account))
      leave(ErasureFence(at: event.occurredAt, isFinal: isFinal))
      try delete(upTo: facts.erasure?.end(signedInAt: facts.lastSignIn), keys) { () throws(AccountStoreError) in
        event.account
      }
    case .fenceAccount(let isFinal): leave(ErasureFence(at: event.occurredAt, isFinal: isFinal))
    // Of another account.
    case .tellSuccessor, .tellSuccessorOfMail, .tellPredecessor: break
    }
  }

  /// Ends its tokens issued up to a time: those of these apps; nil is all of them.
  mutating func endTokens(issuedUpTo: Timestamp, of clients: Set<ClientID>?) {
    for app in clients.map({ $0.map(\.text) }) ?? [EndedAuthorizations.everyApp] {
      endedAuthorizations[app] = max(endedAuthorizations[app] ?? issuedUpTo, issuedUpTo)
    }
  }

  /// The apps of which it still has a token, of those that the database has with the times of their newest.
  func apps(_ known: [ClientID: Timestamp]) -> Set<ClientID> {
    // What an erasure has spared stands among what is to be written.
    var newest = isDeleted ? [:] : known
    for token in tokens where token.marks.invalidAt == nil {
      let app = token.token.client
      newest[app] = max(newest[app] ?? token.issuedAt, token.issuedAt)
    }
    let ended = EndedAuthorizations(endedAt: endedAuthorizations)
    return Set(newest.filter { app, issuedAt in !ended.isOver(app, at: issuedAt) }.keys)
  }

  /// Changes it to what outcomes say; `row` is its own.
  mutating func apply(
    _ correction: Correction, _ row: SealedAccount?, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    if correction.fence != nil || correction.erasesUpTo != nil {
      (isErased, erasedID) = (true, keys.generation == 1 ? AccountID(bytes: hash.bytes) : nil)
    }
    if let fence = correction.fence { leave(fence) }
    if correction.forgetsMail { relay = .removed }
    switch correction.erasesUpTo {
    case nil: break
    case .all: try delete(upTo: nil, keys) { () throws(AccountStoreError) in nil }
    case .upTo(let end):
      try delete(upTo: end, keys) { () throws(AccountStoreError) in try row?.open(with: keys).account }
    }
    if let end = correction.endsTokensUpTo { endedAuthorizations[EndedAuthorizations.everyApp] = end }
  }

  /// Adds a sign-in, and returns the tokens that are not kept.
  mutating func signIn(
    _ account: Account, at time: Timestamp, _ tokens: [NewToken], _ ended: EndedAuthorizations, _ keys: StoreKeys
  ) throws(AccountStoreError) -> [NewToken] {
    // Of the account as it was before its erasure.
    if facts.isErased(at: time) { return tokens }
    try keep(account, keys)
    let last = facts.signedInAt.map { max($0, time) } ?? time
    facts.signedInAt = last
    if made == nil { signIn = last } else { made?.signedInAt = last }
    let over = ended.over(tokens, at: time)
    self.tokens = tokens.filter { !over.contains($0) }.map { StoredToken($0, issuedAt: time) }
    signedInTo = Set(self.tokens.map(\.token).filter { $0.kind == .refresh }.map(\.client))
    return over
  }

  /// Notes that we have ended an authorization ourselves.
  mutating func note(_ revocation: OwnRevocation) { ownRevocations[revocation.client] = revocation }

  /// Sees to it that there is a row for somebody who comes from another team.
  mutating func arrive(_ account: Account, _ keys: StoreKeys) throws(AccountStoreError) { try keep(account, keys) }

  /// Whether there is a row for it.
  var isThere: Bool { facts.key != nil || made != nil }

  /// Mail to it is so from now on; it has a row.
  mutating func setMail(_ state: RelayState) { relay = .set(state) }

  /// The same by what Apple has said of the account that the person had before: what it said earlier of this one is void.
  mutating func takeMail(_ state: RelayState) {
    setMail(state)
    fences.append(
      Fence(
        consumer: .emailRelay, severity: EventWeight.ofMail(state.status).severity, at: state.since,
        tie: EventWeight.ofMail(state.status).tie, isHighest: false))
  }

  /// Nothing is known of mail to it any more.
  mutating func forgetMail() { relay = .removed }

  /// Makes void what the event outweighs, which nothing makes void.
  mutating func raiseFence(of event: EventReference, for consumer: ConsumerName) {
    guard let severity = event.weight.covers else { return }
    let (at, tie) = (event.occurredAt, event.weight.tie)
    let isHighest = severity == event.weight.severity
    guard let index = fences.firstIndex(where: { $0.severity == severity && $0.consumer == consumer }) else {
      fences.append(Fence(consumer: consumer, severity: severity, at: at, tie: tie, isHighest: isHighest))
      return
    }
    if (at, tie) > (fences[index].at, fences[index].tie) { (fences[index].at, fences[index].tie) = (at, tie) }
    if isHighest { fences[index].isHighest = true }
  }

  /// Whether one of the events that were applied makes this one void.
  func outweighs(_ event: EventReference, for consumer: ConsumerName) -> Bool {
    fences.contains { fence in
      fence.severity >= event.weight.severity && fence.consumer == consumer
        && (fence.at, fence.tie) >= (event.occurredAt, event.weight.tie)
    }
  }

  /// Sees to it that there is a row for it.
  private mutating func keep(_ account: Account, _ keys: StoreKeys) throws(AccountStoreError) {
    guard facts.key == nil, made == nil else { return }
    (cipher, made) = try keys.makeDataKey(of: account, hash)
  }

  /// The fence alone.
  private mutating func leave(_ fence: ErasureFence) {
    let signedInAt = facts.lastSignIn
    facts.erasure = facts.erasure?.merged(with: fence, signedInAt: signedInAt) ?? fence
    facts.erasureSignedInAt = signedInAt
    isFenced = true
  }

  /// Deletes its row up to `end`, nil is all. With it goes what belongs to it, and what earlier changes would have made of
  /// that; what is younger goes on under a new data key. What was ended stays so.
  private mutating func delete(
    upTo end: Timestamp?, _ keys: StoreKeys, name: () throws(AccountStoreError) -> Account?
  ) throws(AccountStoreError) {
    let spared = try spared(after: end, keys)
    let account = spared.isEmpty ? nil : try name()
    isDeleted = isDeleted || facts.key != nil
    (facts.key, facts.signedInAt) = (nil, nil)
    (cipher, made, relay, tokens) = (nil, nil, nil, [])
    guard let account else { return }
    try keep(account, keys)
    made?.signedInAt = spared.signedInAt
    facts.signedInAt = spared.signedInAt
    relay = spared.relay.map { .set($0) }
    tokens = spared.tokens
  }

  /// What is younger than an erasure that reaches to `end`. Nothing that it covers is opened.
  private func spared(after end: Timestamp?, _ keys: StoreKeys) throws(AccountStoreError) -> SparedAccount {
    guard facts.key != nil || made != nil, let end else { return SparedAccount() }
    var spared = SparedAccount()
    if let signedInAt = facts.lastSignIn, signedInAt > end { spared.signedInAt = signedInAt }
    spared.tokens = tokens.filter { $0.issuedAt > end }
    if case .set(let state) = relay, state.since > end { spared.relay = state }
    // What the database has is of the data key there.
    guard let wrapped = facts.key else { return spared }
    func cipher() throws(AccountStoreError) -> AES256GCM { try keys.dataKey(of: hash, wrapped) }
    for token in kept?.tokens ?? [] where token.issuedAt > end {
      spared.tokens.append(try token.opened(of: hash, with: cipher()))
    }
    if relay == nil, let kept = kept?.relay, kept.since > end { spared.relay = try kept.opened(of: hash, with: cipher) }
    return spared
  }

  // MARK: What is to be written, sealed

  /// The state of mail.
  mutating func sealedRelay(_ keys: StoreKeys) throws(AccountStoreError) -> SealedRelay? {
    guard case .set(let state) = relay else { return nil }
    return try SealedRelay(state, of: hash, with: cipher(keys))
  }

  /// The tokens.
  mutating func sealedTokens(_ keys: StoreKeys) throws(AccountStoreError) -> [TokenRow] {
    var rows: [TokenRow] = []
    for token in tokens {
      rows.append(
        TokenRow(
          token: token, fingerprint: keys.fingerprint(of: token.token.value),
          value: try SealedToken.seal(token.token, of: hash, with: cipher(keys))))
    }
    return rows
  }

  /// What its values are sealed with.
  private mutating func cipher(_ keys: StoreKeys) throws(AccountStoreError) -> AES256GCM {
    if let cipher { return cipher }
    guard let wrapped = facts.key else { throw AccountStoreError(.failed, "something of an account without its row") }
    let opened = try keys.dataKey(of: hash, wrapped)
    cipher = opened
    return opened
  }
}
