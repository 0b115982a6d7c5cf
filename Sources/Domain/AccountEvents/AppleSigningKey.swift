/// A key that Apple signs with, so that what it signed can be verified long after Apple has replaced it.
///
/// All of them are for RS256 with the exponent 65537; another one is none that this version knows.
public struct AppleSigningKey: Sendable, Hashable {
  /// The name under which a notification's header claims it.
  public let id: KeyID
  /// The modulus as a JWK holds it (`n`): base64url without padding.
  public let modulus: String
  /// When whoever wrote this down had seen the key for the first time.
  public private(set) var firstSeen: Timestamp

  /// The moduli that there are, in bits.
  private static let bitCounts = 2048...8192

  /// Nil unless `modulus` is a number of 2048 to 8192 bits in base64url's only spelling of it.
  public init?(id: KeyID, modulus: String, firstSeen: Timestamp) {
    guard let bitCount = Self.bitCount(modulus.utf8.span), Self.bitCounts ~= bitCount else { return nil }
    (self.id, self.modulus, self.firstSeen) = (id, modulus, firstSeen)
  }

  /// The same key, seen for the first time at another moment.
  public func seen(at time: Timestamp) -> AppleSigningKey {
    var key = self
    key.firstSeen = time
    return key
  }

  /// Whether it is the same key, whenever it was seen.
  public func isSame(as other: AppleSigningKey) -> Bool { id == other.id && modulus == other.modulus }

  /// How many bits the number has; nil where it is none, or has zeros in front.
  private static func bitCount(_ text: Span<UInt8>) -> Int? {
    guard 2...2048 ~= text.count, text.count % 4 != 1 else { return nil }
    for index in text.indices where sextet(text[index]) == nil { return nil }
    guard let first = sextet(text[0]), let second = sextet(text[1]), let last = sextet(text[text.count - 1]) else {
      return nil
    }
    let unused: UInt8 = [0, 0, 0b1111, 0b11][text.count % 4]
    let byte = first << 2 | second >> 4
    guard last & unused == 0, byte > 0 else { return nil }
    return text.count * 3 / 4 * 8 - byte.leadingZeroBitCount
  }

  private static func sextet(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
