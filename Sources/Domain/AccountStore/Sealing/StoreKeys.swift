import AccountEvents
import Cryptography

/// The keys of one store: made with it, and kept in it, wrapped by the master key.
struct StoreKeys: Sendable {
  /// The keys as they are kept.
  struct Wrapped: Sendable {
    let masterKeyID: String
    let hashKey: [UInt8]

    /// The same keys, wrapped with `master`.
    func rewrapped(with master: MasterKey) throws(AccountStoreError) -> Wrapped {
      Wrapped(masterKeyID: master.id, hashKey: try master.rewrap(hashKey, at: .hashKey, ofKey: masterKeyID))
    }
  }

  let master: MasterKey
  private let hashing: HMAC

  /// Keys for a new store, wrapped.
  static func make(for master: MasterKey) throws(AccountStoreError) -> Wrapped {
    Wrapped(masterKeyID: master.id, hashKey: try master.wrap(newKey(), for: .hashKey))
  }

  /// Unwraps the keys of a store.
  init(_ wrapped: Wrapped, with master: MasterKey) throws(AccountStoreError) {
    self.master = master
    hashing = HMAC(key: try master.unwrap(wrapped.hashKey, from: .hashKey, ofKey: wrapped.masterKeyID))
  }

  /// The hash that stands for the account.
  func hash(of account: Account) -> AccountHash { AccountHash(hashing.code(for: account.key)) }

  /// Tells tokens apart without opening them. An account's name has a slash behind its first ten letters: no token's
  /// code is an account's hash.
  func fingerprint(of token: SecretToken) -> [UInt8] { hashing.code(for: Array("token:".utf8) + token.text.utf8).bytes }

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

  private static func newKey() throws(AccountStoreError) -> [UInt8] {
    do throws(CryptographyError) {
      return try SecureRandom.bytes(AES256GCM.keySize)
    } catch {
      throw AccountStoreError(.failed, "\(error)")
    }
  }
}

extension AES256GCM {
  /// A cipher with a key that was unwrapped: of the right size, unless something else was sealed in its place.
  fileprivate init(unwrapped key: [UInt8]) throws(AccountStoreError) {
    do throws(CryptographyError) {
      try self.init(key: key)
    } catch {
      throw AccountStoreError(.damaged, "\(error)")
    }
  }
}

extension AccountHash {
  /// A keyed hash as one that stands for an account.
  fileprivate init(_ code: SHA256Digest) {
    guard let hash = AccountHash(code.bytes) else { preconditionFailure("a digest has 32 bytes") }
    self = hash
  }
}
