package import AccountEvents
package import Cryptography
import JSON

/// The keys by which we know what Apple signed: a value, so that a verification sees one set from start to end.
///
/// Keys that are not for RS256 signatures are passed over, as RFC 7517 §5 has it: Apple may add some beside those that it
/// signs with. All others are believed together or not at all. What makes a key unfit is listed in
/// `AppleKeySetError.Code`; further members of a key or of the set are ignored.
///
/// A set remembers the keys that earlier ones had: Apple replaces a key without notice, while what was signed with it
/// before is still on its way.
package struct AppleKeySet: Sendable {
  /// The most keys a set may have. Apple had 1 to 4 over the years.
  static let maximumCount = 16
  /// The moduli that are believed. Beyond them one verification would cost as much as hundreds.
  static let bitCounts = 2048...8192
  /// The longest text of a set, in bytes: Apple's have a kilobyte or two.
  static let maximumSize = 65_536
  /// How long a key is remembered after Apple was first seen without it: as long as what it signed may be valid, a day and
  /// the tolerance of the clocks, which is ten minutes at most. Where nobody could ask Apple for long, it may have signed
  /// until just before.
  static let memory = Duration.seconds(86_400 + 600)
  private static let limits = JSONLimits(bytes: maximumSize, depth: 8, members: 32)

  private var entries: [Entry] = []
  /// What earlier sets had, the last one gone first.
  private var retired: [Retired] = []
  /// When Apple was seen to have these keys; nil for `none`.
  private var seen: Timestamp?
  /// How many keys were passed over because they are not for RS256 signatures.
  package private(set) var foreignCount = 0
  /// The names of those that have one.
  package private(set) var foreignIDs: [KeyID] = []

  private struct Entry: Sendable {
    let id: KeyID
    let key: RSAPublicKey
    var written: AppleSigningKey
  }

  private struct Retired: Sendable {
    let entry: Entry
    let lastSeen: Timestamp
    let missedSince: Timestamp
  }

  /// A key that Apple has no more.
  package struct RetiredKey: Sendable, Equatable {
    /// The key as Apple wrote it.
    package let key: AppleSigningKey
    /// When Apple was last seen to have it.
    package let lastSeen: Timestamp
    /// When Apple was first seen without it.
    package let missedSince: Timestamp
  }

  /// The set without a key, by which nothing verifies: where a program starts.
  package static let none = AppleKeySet()

  private init() {}

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

    var ids: Set<KeyID> = []
    for (index, key) in written.enumerated() {
      let id = key.id.flatMap(KeyID.init)
      let entry = key.isForeign ? nil : try Self.believe(key, id, at: index, seen: now)
      if let id, let known = earlier.find(id, at: now)?.written {
        guard known.modulus == entry?.written.modulus else { throw AppleKeySetError(.changedKey, at: index) }
      }
      if let id, !ids.insert(id).inserted { throw AppleKeySetError(.duplicateKeyID, at: index) }
      if var entry {
        entry.written = earlier.find(entry.id, at: now)?.written ?? entry.written
        entries.append(entry)
      } else {
        foreignCount += 1
        if let id { foreignIDs.append(id) }
      }
    }
    guard !entries.isEmpty else { throw AppleKeySetError(.noneUsable) }
    seen = now
    let gone =
      earlier.entries.map { Retired(entry: $0, lastSeen: earlier.seen ?? now, missedSince: now) } + earlier.retired
    // Nothing was seen later than now: a clock that was ahead has said so, and would have a key believed for as long.
    let kept = gone.map {
      Retired(entry: $0.entry, lastSeen: min($0.lastSeen, now), missedSince: min($0.missedSince, now))
    }
    retired = Array(
      kept.filter { !ids.contains($0.entry.id) && now - $0.missedSince <= Self.memory }.prefix(Self.maximumCount))
  }

  /// What a notification that names the key may be verified with, and when Apple was last seen to have it where Apple has
  /// it no more; nil where nobody knows the key, or it has been gone for longer than a notification is valid.
  func find(
    _ id: KeyID, at now: Timestamp
  ) -> (key: RSAPublicKey, written: AppleSigningKey, lastSeen: Timestamp?)? {
    for entry in entries where entry.id == id { return (entry.key, entry.written, nil) }
    for old in retired where old.entry.id == id && now - old.missedSince <= Self.memory {
      return (old.entry.key, old.entry.written, old.lastSeen)
    }
    return nil
  }

  /// Whether Apple has a key of that name, or had one that is still remembered.
  package func knows(_ id: KeyID) -> Bool {
    entries.contains { $0.id == id } || retired.contains { $0.entry.id == id }
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

  /// The keys that Apple has no more, and by which what they signed is still verified.
  package var retiredKeys: [RetiredKey] {
    retired.map { RetiredKey(key: $0.entry.written, lastSeen: $0.lastSeen, missedSince: $0.missedSince) }
  }

  /// Remembers a key that Apple had. Throws where it is none that could be believed; one that the set has is left out.
  mutating func note(retired old: RetiredKey) throws(AppleKeySetError) {
    let written = WrittenKey(
      id: old.key.id.text, type: "RSA", use: "sig", algorithm: "RS256", modulus: old.key.modulus, exponent: "AQAB")
    let entry = try Self.believe(written, old.key.id, at: nil, seen: old.key.firstSeen)
    let isKnown = (entries + retired.map(\.entry)).contains { $0.id == entry.id }
    guard !isKnown, retired.count < Self.maximumCount else { return }
    retired.append(Retired(entry: entry, lastSeen: old.lastSeen, missedSince: old.missedSince))
  }

  /// Notes that the key of that name, if it is in the set, was seen at `time` already.
  mutating func note(_ id: KeyID, seen time: Timestamp) {
    for index in entries.indices where entries[index].id == id && time < entries[index].written.firstSeen {
      entries[index].written = entries[index].written.seen(at: time)
    }
  }

  /// The names of all keys, in the set's order.
  package var keyIDs: [KeyID] { entries.map(\.id) }

  private static func believe(
    _ key: WrittenKey, _ id: KeyID?, at index: Int?, seen now: Timestamp
  ) throws(AppleKeySetError) -> Entry {
    guard let id else { throw AppleKeySetError(.keyID, at: index) }
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

/// The members of a JWK that we look at, as they were written; nil where one is missing or is no string. A use or an
/// algorithm that is no string is an empty one.
private struct WrittenKey {
  var id, type, use, algorithm, modulus, exponent: String?

  /// Whether it is by its own words no key for RS256 signatures.
  /// Neither its use nor its algorithm has to be said (RFC 7517 §4.2, §4.4).
  var isForeign: Bool { type != "RSA" || (use ?? "sig") != "sig" || (algorithm ?? "RS256") != "RS256" }

  static func readAll(from reader: inout JSONReader) throws(JSONError) -> [WrittenKey] {
    var keys: [WrittenKey] = []
    try reader.readArray { element throws(JSONError) in
      var key = WrittenKey()
      try element.readObject { name, value throws(JSONError) in
        guard try value.kind == .string else {
          // Said, and not so that it can be understood.
          if name == "use" { key.use = "" }
          if name == "alg" { key.algorithm = "" }
          return
        }
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
