import AccountEvents
import Cryptography

/// An account as the settlements of a group leave it, one after the other, and what is to be written for that.
struct ChangedAccount {
  /// What becomes of its state of mail.
  enum Relay {
    case set(RelayState)
    case removed
  }

  let hash: AccountHash
  private let keys: StoreKeys

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

  /// An account as the database has it.
  init(_ hash: AccountHash, _ facts: PostgreSQLFacts, _ keys: StoreKeys) {
    (self.hash, self.keys) = (hash, keys)
    wrapped = facts.account.map { ($0.dataKey, $0.masterKeyID) }
    accountSignedInAt = facts.account?.signedInAt
    erasure = facts.erasure
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
    case .eraseAccount(let isFinal): erase(ErasureFence(at: event.occurredAt, isFinal: isFinal))
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

  /// With the row goes what belongs to it, and what earlier settlements would have changed of it. What was
  /// ended stays so.
  private mutating func erase(_ fence: ErasureFence) {
    leave(fence)
    isDeleted = isDeleted || wrapped != nil
    (wrapped, cipher, made, accountSignedInAt) = (nil, nil, nil, nil)
    relay = nil
  }

  /// The fence alone.
  private mutating func leave(_ fence: ErasureFence) {
    let signedInAt = signedInAt
    erasure = (erasure?.fence.merged(with: fence, signedInAt: signedInAt) ?? fence, signedInAt)
    isFenced = true
  }
}
