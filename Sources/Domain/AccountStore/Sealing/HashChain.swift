import AccountEvents
import Cryptography

/// The keys that a store's accounts are hashed with, oldest first. The first one hashes the account's name, each further
/// one the hash before it: a row moves to a new key by its hash alone, though the name is gone.
struct HashChain: Sendable {
  private let keys: [HashKey]
  /// What hashes name the keys. A hash is made with all keys up to its own: the name stands for all of them, in their
  /// order, so that nobody takes a hash of another chain for one of this.
  private let names: [HashKeyID]

  /// A chain of these keys, at least one.
  init(_ keys: [HashKey]) {
    precondition(!keys.isEmpty, "accounts are hashed with a key")
    self.keys = keys
    names = keys.dropFirst().reduce(into: [keys[0].id]) { names, key in
      names.append(Self.name(of: key, behind: names[names.count - 1]))
    }
  }

  /// How many keys there are: rows note it with the hash that they bear.
  var generation: Int { keys.count }

  /// The newest key, as hashes name it.
  var newest: HashKeyID? { name(keys.count - 1) }

  /// The first key's id, which stays the same through all rotations.
  var firstID: HashKeyID { keys[0].id }

  /// The newest key's own id.
  var newestID: HashKeyID { keys[keys.count - 1].id }

  /// Whether the key is one of them.
  func contains(_ key: HashKey) -> Bool { keys.contains { $0.id == key.id } }

  /// What hashes name the key, once it is the newest.
  func name(ofNext key: HashKey) -> HashKeyID { Self.name(of: key, behind: names[names.count - 1]) }

  private static func name(of key: HashKey, behind former: HashKeyID) -> HashKeyID {
    HashKeyID(digestOf: Array("siwa hash chain id".utf8) + former.description.utf8 + key.bytes)
  }

  // MARK: Hashes

  /// The hash under the newest key.
  func hash(of account: Account) -> AccountHash { hash(code(for: account.key, through: keys.count), keys.count - 1) }

  /// The hashes under each key, oldest first.
  func hashes(of account: Account) -> [AccountHash] {
    var hashes: [AccountHash] = []
    var message = account.key
    for (index, key) in keys.enumerated() {
      message = key.hmac.code(for: message).bytes
      hashes.append(hash(message, index))
    }
    return hashes
  }

  /// The hash under the newest key for a hash under any of them; nil where its key is not known.
  func newest(of hash: AccountHash) -> AccountHash? {
    guard let index = keys.indices.first(where: { name($0) == hash.key }) else { return nil }
    return newest(of: hash.bytes, generation: index + 1)
  }

  /// The hash under the newest key for one that a row bears.
  func newest(of bytes: [UInt8], generation: Int) -> AccountHash {
    hash(code(for: bytes, from: generation, through: keys.count), keys.count - 1)
  }

  /// Where the account's rows stand before its move to the newest key, and after it.
  func move(of account: Account) -> HashMove {
    let former = code(for: account.key, through: keys.count - 1)
    return HashMove(
      from: hash(former, keys.count - 2), to: newest(of: former, generation: keys.count - 1))
  }

  /// Where the rows of the account with this id stand before its move to the newest key, and after it.
  func move(of id: AccountID) -> HashMove {
    let former = code(for: id.bytes, from: 1, through: keys.count - 1)
    return HashMove(
      from: hash(former, keys.count - 2), to: newest(of: former, generation: keys.count - 1))
  }

  /// The move of the rows that bear this hash.
  func move(of bytes: [UInt8], generation: Int) -> HashMove {
    HashMove(from: hash(bytes, generation - 1), to: newest(of: bytes, generation: generation))
  }

  /// The code of something else than an account, under the newest key.
  func code(for message: [UInt8]) -> [UInt8] { code(for: message, through: keys.count) }

  /// The same under the key before it, where there are several.
  func formerCode(for message: [UInt8]) -> [UInt8] { code(for: message, through: max(1, keys.count - 1)) }

  /// The same under the first key: it outlasts every rotation.
  func lastingCode(for message: [UInt8]) -> [UInt8] { code(for: message, through: 1) }

  /// The code under the newest key for one under the key before it.
  func moved(_ code: [UInt8]) -> [UInt8] { self.code(for: code, from: keys.count - 1, through: keys.count) }

  private func code(for message: [UInt8], from start: Int = 0, through end: Int) -> [UInt8] {
    keys[start..<end].reduce(message) { message, key in key.hmac.code(for: message).bytes }
  }

  private func hash(_ bytes: [UInt8], _ index: Int) -> AccountHash {
    guard let hash = AccountHash(bytes, key: name(index)) else { preconditionFailure("a digest has 32 bytes") }
    return hash
  }

  /// The first is not named: outcomes from before any rotation name none.
  private func name(_ index: Int) -> HashKeyID? { index == 0 ? nil : names[index] }
}

extension HashChain: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// How many keys there are.
  var description: String { "hashing keys: \(keys.count)" }
  /// The same.
  var debugDescription: String { description }
  /// Nothing: a dump must not show the keys.
  var customMirror: Mirror { Mirror(self, children: []) }
}

/// The move of an account's rows from the hash under the former key to the one under the newest.
struct HashMove: Sendable, Hashable {
  let from: AccountHash
  let to: AccountHash
}

/// Which keys hold in a store: each transaction asks.
struct HashingState: Sendable, Equatable {
  /// How many keys there are.
  let generation: Int
  /// Whether rows may still bear hashes of the key before the newest: a rotation is under way.
  let isMoving: Bool
  /// What hashes name the newest key. After a failover or a restore there may be as many keys, but others.
  let newest: HashKeyID?
  /// Which master key has wrapped it. Who does not know that one wraps nothing any more.
  let masterKeyID: String
}
