/// A keyed hash (HMAC-SHA256 of `team/sub`) that stands for an account where its name must not: the same account gives
/// the same hash, and without the store's key nobody gets from it to the person or can try one out.
package struct AccountHash: Sendable, Hashable, CustomStringConvertible {
  /// The 32 bytes.
  package let bytes: [UInt8]

  /// Nil unless there are 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }

  /// The bytes as 64 hexadecimal digits.
  package var description: String {
    String(decoding: bytes.flatMap { [Self.digit($0 >> 4), Self.digit($0 & 15)] }, as: UTF8.self)
  }

  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
