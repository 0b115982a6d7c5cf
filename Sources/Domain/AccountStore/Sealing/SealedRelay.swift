import AccountEvents
import Cryptography

/// What is known of mail to an account, as it is kept: the address is sealed.
struct SealedRelay {
  let status: RelayState.Status
  let since: Timestamp
  let isPrivate: Bool
  let address: [UInt8]?

  /// What a row holds.
  init(status: RelayState.Status, since: Timestamp, isPrivate: Bool, address: [UInt8]?) {
    (self.status, self.since, self.isPrivate, self.address) = (status, since, isPrivate, address)
  }

  /// Seals what Apple said of the account.
  init(_ state: RelayState, of hash: AccountHash, with key: AES256GCM) throws(AccountStoreError) {
    (status, since, isPrivate) = (state.status, state.since, state.isPrivate)
    guard let text = state.address?.text else {
      address = nil
      return
    }
    address = try key.seal(Array(text.utf8), for: .address(of: hash))
  }

  /// Opens it as that of the account, whose data key is asked for where there is an address.
  func opened(
    of hash: AccountHash, with key: () throws(AccountStoreError) -> AES256GCM?
  ) throws(AccountStoreError) -> RelayState {
    guard let address else { return RelayState(status: status, address: nil, isPrivate: isPrivate, since: since) }
    // The schema sees to the row of the account.
    guard let key = try key() else { throw AccountStoreError(.damaged, "an address without its account") }
    let text = try key.open(address, from: .address(of: hash))
    guard let address = String(opened: text).flatMap(RelayAddress.init) else {
      throw AccountStoreError(.damaged, "an address: not of the form in which it was written")
    }
    return RelayState(status: status, address: address, isPrivate: isPrivate, since: since)
  }
}

/// What a database has of mail to an account, and of the account.
struct RelayFacts {
  /// The state, where one is known.
  let relay: SealedRelay?
  /// The account.
  let account: AccountFacts

  /// Whether the database has nothing of the account.
  var isEmpty: Bool { relay == nil && account.key == nil && account.erasure == nil }

  /// What that comes to.
  func knowledge(of hash: AccountHash, with keys: StoreKeys) throws(AccountStoreError) -> RelayKnowledge {
    try knowledge(of: hash) { () throws(AccountStoreError) in
      guard let key = account.key else { return nil }
      return try keys.dataKey(of: hash, key)
    }
  }

  /// The same with the account's data key, which is asked for where there is an address.
  func knowledge(
    of hash: AccountHash, with key: () throws(AccountStoreError) -> AES256GCM?
  ) throws(AccountStoreError) -> RelayKnowledge {
    if let relay { return .known(try relay.opened(of: hash, with: key)) }
    if let erasedAt = account.erasure?.at, account.signedInAt.map({ $0 <= erasedAt }) ?? true {
      return .erased(since: erasedAt)
    }
    return .unknown
  }
}
