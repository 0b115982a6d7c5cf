package import Cryptography

/// Apple's keys of the day: several at once, replaced one at a time and without notice.
package struct KeyRing: Sendable {
  /// The keys in use, the oldest first.
  package private(set) var keys: [SigningKey]
  /// The key of somebody who is not Apple, for the faults that need one.
  let forger: RSAPrivateKey
  private var turn = 0

  /// A ring of `count` new keys. Takes about 50 ms a key, and one more.
  package init(generating count: Int) throws(CryptographyError) {
    precondition(count > 0, "Apple always has a key")
    forger = try RSAPrivateKey(bitCount: 2048)
    keys = []
    for _ in 0..<count { keys.append(try SigningKey.generate()) }
  }

  /// The key for the next signature: each in turn, as notifications of one day carry different `kid`s.
  mutating func next() -> SigningKey {
    turn = (turn + 1) % keys.count
    return keys[turn]
  }

  /// Puts a new key in the place of the oldest, which is gone at once. Returns the new key's `kid`.
  mutating func rotate() throws(CryptographyError) -> String {
    let new = try SigningKey.generate()
    keys.removeFirst()
    keys.append(new)
    return new.kid
  }

  /// The key set as JSON; `shift` turns the order, which is not stable at Apple either.
  func jwks(shift: Int) throws(CryptographyError) -> [Members] {
    var members: [Members] = []
    for index in keys.indices { members.append(try keys[(index + shift) % keys.count].jwk()) }
    return members
  }
}
