/// The name of a key that accounts are hashed with: 16 hexadecimal digits that say nothing about the key.
public struct HashKeyID: Sendable, Hashable, CustomStringConvertible {
  /// The digits as a number.
  package let number: UInt64

  /// An id from its number.
  package init(_ number: UInt64) { self.number = number }

  /// Nil unless `text` is 16 hexadecimal digits, the letters small.
  public init?(_ text: String) {
    guard text.utf8.count == 16, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }),
      let number = UInt64(text, radix: 16)
    else { return nil }
    self.number = number
  }

  /// The 16 digits.
  public var description: String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
