import AccountEvents
import Cryptography

/// An account as the settlements of a group leave it, one after the other, and what is to be written for that.
struct ChangedAccount {
  /// What becomes of its state of mail.
  enum Relay {
    case set(RelayState)
    case removed
  }

  /// A token that is to be written.
  struct TokenRow {
    let hash: AccountHash
    let token: StoredToken
    let fingerprint: [UInt8]
    let value: [UInt8]
  }

  let hash: AccountHash
  private let keys: StoreKeys
  /// What the database has of it beside its row, where it may be erased.
  private let kept: PostgreSQLKept?

  // As it stands now.
  private var wrapped: (key: [UInt8], masterKeyID: String)?
  private var cipher: AES256GCM?
  private var accountSignedInAt: Timestamp?
  private(set) var erasure: (fence: ErasureFence, signedInAt: Timestamp?)?

  // What is to be written, in this order.
  private(set) var isDeleted = false
  private(set) var isFenced = false
  private(set) var made: SealedAccount?
  private(set) var ownRevocations: [ClientID: OwnRevocation] = [:]
  private(set) var endedAuthorizations: [String: Timestamp] = [:]
  private(set) var relay: Relay?
  /// What an erasure has spared.
  private var tokens: [StoredToken] = []

  /// An account as the database has it; `kept` of one that may be erased.
  init(_ hash: AccountHash, _ facts: PostgreSQLFacts, kept: PostgreSQLKept?, _ keys: StoreKeys) {
    (self.hash, self.keys, self.kept) = (hash, keys, kept)
    wrapped = facts.account.map { ($0.dataKey, $0.masterKeyID) }
    accountSignedInAt = facts.account?.signedInAt
    erasure = facts.erasure
  }

  /// An account that outcomes contradict.
  init(_ hash: AccountHash, _ row: PostgreSQLReconciler.Row, kept: PostgreSQLKept?, _ keys: StoreKeys) {
    (self.hash, self.keys, self.kept) = (hash, keys, kept)
    wrapped = row.account.map { ($0.dataKey, $0.masterKeyID) }
    accountSignedInAt = row.facts.accountSignedInAt
    erasure = row.facts.erasure.map { ($0, row.facts.erasureSignedInAt) }
  }

  /// Changes it to what outcomes say.
  mutating func apply(_ correction: Correction, _ row: SealedAccount?) throws(AccountStoreError) {
    if let fence = correction.fence { leave(fence) }
    let keys = keys
    switch correction.erasesUpTo {
    case nil: break
    case .all: try delete(upTo: nil) { () throws(AccountStoreError) in nil }
    case .upTo(let end): try delete(upTo: end) { () throws(AccountStoreError) in try row?.open(with: keys).account }
    }
    if correction.forgetsMail { relay = .removed }
    if let end = correction.endsTokensUpTo { endedAuthorizations[EndedAuthorizations.everyApp] = end }
  }

  /// The last sign-in that is known, be it from before an erasure.
  var signedInAt: Timestamp? { [accountSignedInAt, erasure?.signedInAt].compactMap(\.self).max() }

  /// Changes it.
  mutating func apply(_ change: StoreChange, _ event: EventReference) throws(AccountStoreError) {
    switch change {
    case .setRelay(let state):
      try keep(event.account)
      relay = .set(state)
    case .removeRelay: relay = .removed
    case .endTokens(let issuedUpTo, let clients):
      for app in clients.map({ $0.map(\.text) }) ?? [EndedAuthorizations.everyApp] {
        endedAuthorizations[app] = max(endedAuthorizations[app] ?? issuedUpTo, issuedUpTo)
      }
    case .noteOwnRevocation(let client, let isProven):
      ownRevocations[client] = OwnRevocation(of: client, at: event.occurredAt, isProven: isProven)
    case .eraseAccount(let isFinal):
      try erase(ErasureFence(at: event.occurredAt, isFinal: isFinal), of: event.account)
    case .fenceAccount(let isFinal): leave(ErasureFence(at: event.occurredAt, isFinal: isFinal))
    }
  }

  /// The sealed state of mail that is to be written.
  mutating func sealedRelay() throws(AccountStoreError) -> SealedRelay? {
    guard case .set(let state) = relay else { return nil }
    if let cipher { return try SealedRelay(state, of: hash, with: cipher) }
    guard let wrapped else { throw AccountStoreError(.failed, "a state of mail without its account") }
    let cipher = try keys.dataKey(of: hash, wrapped.key, masterKeyID: wrapped.masterKeyID)
    self.cipher = cipher
    return try SealedRelay(state, of: hash, with: cipher)
  }

  /// Sees to it that there is a row for it.
  private mutating func keep(_ account: Account) throws(AccountStoreError) {
    guard wrapped == nil, made == nil else { return }
    let (cipher, row) = try keys.makeDataKey(of: account, hash)
    (self.cipher, made) = (cipher, row)
  }

  /// Deletes what the erasure covers, and leaves its fence.
  private mutating func erase(_ fence: ErasureFence, of account: Account) throws(AccountStoreError) {
    leave(fence)
    try delete(upTo: erasure?.fence.end(signedInAt: signedInAt)) { () throws(AccountStoreError) in account }
  }

  /// With the row goes what belongs to it, and what earlier settlements would have changed of it, unless that is younger
  /// than `end`, nil is all. What was ended stays so.
  private mutating func delete(
    upTo end: Timestamp?, name: () throws(AccountStoreError) -> Account?
  ) throws(AccountStoreError) {
    let spared = try spared(after: end)
    let account = spared.isEmpty ? nil : try name()
    isDeleted = isDeleted || wrapped != nil
    (wrapped, cipher, made, accountSignedInAt, relay, tokens) = (nil, nil, nil, nil, nil, [])
    guard let account else { return }
    try keep(account)
    made?.signedInAt = spared.signedInAt
    accountSignedInAt = spared.signedInAt
    relay = spared.relay.map { .set($0) }
    tokens = spared.tokens
  }

  /// What is younger than an erasure that reaches to `end`. Nothing that it covers is opened.
  private func spared(after end: Timestamp?) throws(AccountStoreError) -> SparedAccount {
    guard wrapped != nil || made != nil, let end else { return SparedAccount() }
    var spared = SparedAccount()
    if let signedInAt, signedInAt > end { spared.signedInAt = signedInAt }
    spared.tokens = tokens.filter { $0.issuedAt > end }
    if case .set(let state) = relay, state.since > end { spared.relay = state }
    guard let wrapped else { return spared }
    // What the database has is of that data key.
    func cipher() throws(AccountStoreError) -> AES256GCM {
      try keys.dataKey(of: hash, wrapped.key, masterKeyID: wrapped.masterKeyID)
    }
    for token in kept?.tokens ?? [] where token.issuedAt > end {
      spared.tokens.append(try token.opened(of: hash, with: cipher()))
    }
    if relay == nil, let kept = kept?.relay, kept.since > end { spared.relay = try kept.opened(of: hash, with: cipher) }
    return spared
  }

  /// The tokens that are to be written, sealed.
  func sealedTokens() throws(AccountStoreError) -> [TokenRow] {
    guard let cipher, !tokens.isEmpty else { return [] }
    var rows: [TokenRow] = []
    for token in tokens {
      rows.append(
        TokenRow(
          hash: hash, token: token, fingerprint: keys.fingerprint(of: token.token.value),
          value: try SealedToken.seal(token.token, of: hash, with: cipher)))
    }
    return rows
  }

  /// The fence alone.
  private mutating func leave(_ fence: ErasureFence) {
    let signedInAt = signedInAt
    erasure = (erasure?.fence.merged(with: fence, signedInAt: signedInAt) ?? fence, signedInAt)
    isFenced = true
  }
}
