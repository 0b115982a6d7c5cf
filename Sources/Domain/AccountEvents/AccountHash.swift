/// A keyed hash (HMAC-SHA256 of `team/sub`) that stands for an account where its name must not: the same account gives
/// the same hash under the same key, and without the store's keys nobody gets from it to the person or can try one out.
public struct AccountHash: Sendable, Hashable, CustomStringConvertible {
  /// The 32 bytes.
  public let bytes: [UInt8]
  /// The hashing key it was made with; nil for the first one of a store.
  public let key: HashKeyID?

  /// Nil unless there are 32 bytes.
  public init?(_ bytes: [UInt8], key: HashKeyID? = nil) {
    guard bytes.count == 32 else { return nil }
    (self.bytes, self.key) = (bytes, key)
  }

  /// Compares the bytes alone: two keys never give the same ones.
  public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }

  /// Adds all bytes at once: by itself an array adds them one after the other.
  public func hash(into hasher: inout Hasher) { unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) } }

  /// The bytes as 64 hexadecimal digits.
  public var description: String { String(decoding: digits, as: UTF8.self) }

  /// The digits of the description.
  var digits: [UInt8] {
    var digits: [UInt8] = []
    digits.reserveCapacity(64)
    appendDigits(to: &digits)
    return digits
  }

  /// Appends the digits of the description.
  func appendDigits(to output: inout [UInt8]) {
    for byte in bytes {
      output.append(Self.digit(byte >> 4))
      output.append(Self.digit(byte & 15))
    }
  }

  /// Nil unless `text` is 64 hexadecimal digits, the letters small.
  public init?(_ text: String, key: HashKeyID? = nil) {
    let digits = Array(text.utf8)
    guard digits.count == 64 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(32)
    for index in stride(from: 0, to: 64, by: 2) {
      guard let high = Self.value(of: digits[index]), let low = Self.value(of: digits[index + 1]) else { return nil }
      bytes.append(high << 4 | low)
    }
    (self.bytes, self.key) = (bytes, key)
  }

  private static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x61...0x66: digit - 0x57
    default: nil
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
