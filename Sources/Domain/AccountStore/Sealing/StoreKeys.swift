import AccountEvents
import Cryptography

/// The keys of one store: made with it, and kept in it, wrapped by the master key.
struct StoreKeys: Sendable {
  /// A hashing key as it is kept.
  struct WrappedHashKey: Sendable {
    /// Its place in the chain, from 1 on.
    let number: Int
    /// What hashes name it; nil for the first one.
    let name: HashKeyID?
    let masterKeyID: String
    let key: [UInt8]

    /// The same key, wrapped with `master`.
    func rewrapped(with master: MasterKey) throws(AccountStoreError) -> WrappedHashKey {
      WrappedHashKey(
        number: number, name: name, masterKeyID: master.id,
        key: try master.rewrap(key, at: .hashKey(number), ofKey: masterKeyID))
    }
  }

  /// The keys as they are kept.
  struct Wrapped: Sendable {
    /// The hashing keys, oldest first.
    var keys: [WrappedHashKey] = []
    /// Whether no row bears a hash of the key before the newest.
    var isComplete = true
  }

  let master: MasterKey
  let hashing: HashChain
  let state: HashingState

  /// A hashing key for a new store, wrapped.
  static func make(for master: MasterKey) throws(AccountStoreError) -> WrappedHashKey {
    try wrap(newKey(), number: 1, nil, for: master)
  }

  /// A hashing key, wrapped for its place in the chain.
  static func wrap(
    _ key: [UInt8], number: Int, _ name: HashKeyID?, for master: MasterKey
  ) throws(AccountStoreError) -> WrappedHashKey {
    WrappedHashKey(
      number: number, name: name, masterKeyID: master.id, key: try master.wrap(key, for: .hashKey(number)))
  }

  /// Unwraps the keys of a store.
  init(_ wrapped: Wrapped, with master: MasterKey) throws(AccountStoreError) {
    var keys: [HashKey] = []
    for row in wrapped.keys {
      let bytes = try master.unwrap(row.key, from: .hashKey(row.number), ofKey: row.masterKeyID)
      guard row.number == keys.count + 1, let key = HashKey(bytes) else {
        throw AccountStoreError(.damaged, "the hashing keys are not those that were written")
      }
      keys.append(key)
    }
    guard !keys.isEmpty else { throw AccountStoreError(.damaged, "it has no keys") }
    (self.master, hashing) = (master, HashChain(keys))
    guard wrapped.keys.last?.name == hashing.newest else {
      throw AccountStoreError(.damaged, "the hashing keys are not those that were written")
    }
    state = HashingState(
      generation: keys.count, isMoving: !wrapped.isComplete && keys.count > 1, newest: hashing.newest,
      masterKeyID: wrapped.keys.last?.masterKeyID ?? "")
  }

  /// The hash that stands for the account.
  func hash(of account: Account) -> AccountHash { hashing.hash(of: account) }

  /// Whether the hash may stand for the account in a row by now.
  func isHash(_ hash: AccountHash, of account: Account) -> Bool {
    hashing.hash(of: account) == hash || state.isMoving && hashing.move(of: account).from == hash
  }

  /// How many hashing keys there are, as rows note it.
  var generation: Int64 { Int64(hashing.generation) }

  /// The event with its account's hash under the newest key: whoever made the reference may not know that one.
  func current(_ event: EventReference) -> EventReference {
    event.hash.key == hashing.newest ? event : event.hashed(hash(of: event.account))
  }

  /// The settlements with such events.
  func current(_ settlements: [Settlement]) -> [Settlement] {
    let newest = hashing.newest
    if settlements.allSatisfy({ $0.event.hash.key == newest }) { return settlements }
    return settlements.map { $0.about(current($0.event)) }
  }

  /// Tells tokens apart without opening them. An account's name has a slash behind its first ten letters: no token's
  /// code is an account's hash.
  func fingerprint(of token: SecretToken) -> [UInt8] { hashing.code(for: Array("token:".utf8) + token.text.utf8) }

  /// What vouches for a request.
  func code(of request: DeletionRequest) -> String { Base64URL.encode(hashing.code(for: request.bytes)) }

  /// Whether the code is that of the request, under the newest key or the one before it: a request may wait for days
  /// behind a target that fails, and must not be forgotten because the key was replaced meanwhile. Where a key has become
  /// known to somebody, the second rotation ends it.
  func isGenuine(_ code: String, of request: DeletionRequest) -> Bool {
    guard let code = Base64URL.decode(code).flatMap({ SHA256Digest(bytes: $0) }) else { return false }
    return [hashing.code(for: request.bytes), hashing.formerCode(for: request.bytes)].contains {
      SHA256Digest(bytes: $0)?.matches(code) ?? false
    }
  }

  /// A new data key for an account, and the same wrapped.
  func makeDataKey(of account: AccountHash) throws(AccountStoreError) -> (cipher: AES256GCM, wrapped: [UInt8]) {
    let key = try Self.newKey()
    return (try AES256GCM(unwrapped: key), try master.wrap(key, for: .dataKey(of: account)))
  }

  /// The data key of an account.
  func dataKey(
    of account: AccountHash, _ wrapped: AccountFacts.WrappedKey
  ) throws(AccountStoreError) -> AES256GCM {
    try AES256GCM(unwrapped: master.unwrap(wrapped.bytes, from: .dataKey(of: account), ofKey: wrapped.masterKeyID))
  }

  static func newKey() throws(AccountStoreError) -> [UInt8] {
    do throws(CryptographyError) {
      return try SecureRandom.bytes(AES256GCM.keySize)
    } catch {
      throw AccountStoreError(.failed, "\(error)")
    }
  }
}

extension AES256GCM {
  /// A cipher with a key that was unwrapped: of the right size, unless something else was sealed in its place.
  init(unwrapped key: [UInt8]) throws(AccountStoreError) {
    do throws(CryptographyError) {
      try self.init(key: key)
    } catch {
      throw AccountStoreError(.damaged, "\(error)")
    }
  }
}
