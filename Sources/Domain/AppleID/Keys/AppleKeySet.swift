package import AccountEvents
package import Cryptography
import JSON

/// The keys by which we know what Apple signed: a value, so that a verification sees one set from start to end.
///
/// A set is believed whole or not at all. What makes a key unfit is listed in `AppleKeySetError.Code`; further members
/// of a key or of the set are ignored.
package struct AppleKeySet: Sendable {
  /// The most keys a set may have. Apple had 1 to 4 over the years.
  static let maximumCount = 16
  /// The moduli that are believed. Beyond them one verification would cost as much as hundreds.
  static let bitCounts = 2048...8192
  /// The longest text of a set, in bytes: Apple's have a kilobyte or two.
  static let maximumSize = 65_536
  private static let limits = JSONLimits(bytes: maximumSize, depth: 8, members: 32)

  private var entries: [Entry]

  private struct Entry: Sendable {
    let id: KeyID
    let key: RSAPublicKey
    var written: AppleSigningKey
  }

  /// The set without a key, by which nothing verifies: where a program starts.
  package static let none = AppleKeySet(entries: [])

  private init(entries: [Entry]) { self.entries = entries }

  /// Reads a JWK set (RFC 7517 §5) as Apple's keys endpoint answers it.
  ///
  /// - Parameters:
  ///   - now: When those keys were seen for the first time that are not in `earlier`.
  ///   - earlier: The set whose place it is to take. A `kid` of its that names another key now is refused: whatever the
  ///     old key signed would be taken for a forgery.
  package init(reading text: RawSpan, at now: Timestamp, after earlier: AppleKeySet) throws(AppleKeySetError) {
    var written: [WrittenKey]?
    do {
      try JSONReader.read(text, Self.limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          if name == "keys" { written = try WrittenKey.readAll(from: &value) }
        }
      }
    } catch {
      throw AppleKeySetError(.malformed, cause: error)
    }
    guard let written else { throw AppleKeySetError(.malformed) }
    guard !written.isEmpty else { throw AppleKeySetError(.empty) }
    guard written.count <= Self.maximumCount else { throw AppleKeySetError(.tooManyKeys) }

    var entries: [Entry] = []
    for (index, key) in written.enumerated() {
      var entry = try Self.believe(key, at: index, seen: now)
      if let known = earlier.signingKey(entry.id) {
        guard known.modulus == entry.written.modulus else { throw AppleKeySetError(.changedKey, at: index) }
        entry.written = known
      }
      guard !entries.contains(where: { $0.id == entry.id }) else { throw AppleKeySetError(.duplicateKeyID, at: index) }
      entries.append(entry)
    }
    self.entries = entries
  }

  /// The key of that name; nil where the set has none.
  package subscript(id: KeyID) -> RSAPublicKey? {
    for entry in entries where entry.id == id { return entry.key }
    return nil
  }

  /// The key of that name as Apple wrote it, with the time since when we have it; nil where the set has none.
  package func signingKey(_ id: KeyID) -> AppleSigningKey? {
    for entry in entries where entry.id == id { return entry.written }
    return nil
  }

  /// All keys as Apple wrote them, in the set's order.
  package var signingKeys: [AppleSigningKey] { entries.map(\.written) }

  /// Notes that the key of that name, if it is in the set, was seen at `time` already.
  mutating func note(_ id: KeyID, seen time: Timestamp) {
    for index in entries.indices where entries[index].id == id && time < entries[index].written.firstSeen {
      entries[index].written = entries[index].written.seen(at: time)
    }
  }

  /// The names of all keys, in the set's order.
  package var keyIDs: [KeyID] { entries.map(\.id) }

  private static func believe(_ key: WrittenKey, at index: Int, seen now: Timestamp) throws(AppleKeySetError) -> Entry {
    guard let id = key.id.flatMap(KeyID.init) else { throw AppleKeySetError(.keyID, at: index) }
    guard key.type == "RSA" else { throw AppleKeySetError(.keyType, at: index) }
    guard key.use == "sig" else { throw AppleKeySetError(.use, at: index) }
    guard key.algorithm == "RS256" else { throw AppleKeySetError(.algorithm, at: index) }
    guard
      let modulus = key.modulus.flatMap(Base64URL.decode), let exponent = key.exponent.flatMap(Base64URL.decode)
    else { throw AppleKeySetError(.number, at: index) }
    guard exponent == [1, 0, 1] else { throw AppleKeySetError(.exponent, at: index) }
    let publicKey: RSAPublicKey
    do {
      publicKey = try RSAPublicKey(modulus: modulus, exponent: exponent)
    } catch {
      throw AppleKeySetError(.number, at: index)
    }
    guard bitCounts ~= publicKey.bitCount else { throw AppleKeySetError(.size, at: index) }
    // What is left to refuse is a number with zeros in front, of which there would be many spellings.
    guard let written = key.modulus.flatMap({ AppleSigningKey(id: id, modulus: $0, firstSeen: now) }) else {
      throw AppleKeySetError(.number, at: index)
    }
    return Entry(id: id, key: publicKey, written: written)
  }
}

/// The members of a JWK that we look at, as they were written; nil where one is missing or is no string.
private struct WrittenKey {
  var id, type, use, algorithm, modulus, exponent: String?

  static func readAll(from reader: inout JSONReader) throws(JSONError) -> [WrittenKey] {
    var keys: [WrittenKey] = []
    try reader.readArray { element throws(JSONError) in
      var key = WrittenKey()
      try element.readObject { name, value throws(JSONError) in
        guard try value.kind == .string else { return }
        switch name {
        case "kid": key.id = try value.readString()
        case "kty": key.type = try value.readString()
        case "use": key.use = try value.readString()
        case "alg": key.algorithm = try value.readString()
        case "n": key.modulus = try value.readString()
        case "e": key.exponent = try value.readString()
        default: break
        }
      }
      keys.append(key)
    }
    return keys
  }
}
