/// A member's name as it is kept to notice when it comes again.
struct MemberName {
  private let token: StringToken
  /// The name without escapes, where its spelling has some: `"a"` and `"\u0061"` are one name.
  private let unescaped: [UInt8]?
  /// The length and the first seven bytes, which tell most names apart.
  private let summary: UInt64

  init(_ token: StringToken, _ reader: borrowing JSONReader) {
    self.token = token
    unescaped = token.hasEscapes ? reader.utf8(of: token) : nil
    summary = unsafe Self.withBytes(token, unescaped, reader) { bytes in
      var summary = UInt64(truncatingIfNeeded: bytes.count)
      for index in 0..<min(7, bytes.count) { unsafe summary = summary << 8 | UInt64(bytes[index]) }
      return summary
    }
  }

  /// Whether both are the same name of one object.
  func equals(_ other: MemberName, _ reader: borrowing JSONReader) -> Bool {
    guard summary == other.summary else { return false }
    return unsafe Self.withBytes(token, unescaped, reader) { bytes in
      unsafe Self.withBytes(other.token, other.unescaped, reader) { otherBytes in unsafe bytes.elementsEqual(otherBytes)
      }
    }
  }

  private static func withBytes<Value>(
    _ token: StringToken, _ unescaped: [UInt8]?, _ reader: borrowing JSONReader,
    _ body: (UnsafeRawBufferPointer) -> Value
  ) -> Value {
    if let unescaped { return unsafe unescaped.withUnsafeBytes(body) }
    return unsafe body(reader.contents(of: token))
  }
}
