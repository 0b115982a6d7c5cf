/// A member's name as it is kept to notice when it comes again.
struct MemberName {
  /// Whether it stands in `unescapedNames`, because its spelling has escapes, and not in the text.
  let isUnescaped: Bool
  let start: Int
  let count: Int
  /// The first eight bytes, which tell most names of one length apart.
  let beginning: UInt64

  /// One of 64 bits, always the same for the same name.
  var bit: UInt64 { 1 << (((beginning ^ UInt64(truncatingIfNeeded: count)) &* 0x9e37_79b9_7f4a_7c15) >> 58) }
}

extension JSONReader {
  /// Takes down a name that was just read: `"a"` and `"\u0061"` are one name.
  mutating func remember(_ token: StringToken) -> MemberName {
    guard token.hasEscapes else {
      return unsafe MemberName(
        isUnescaped: false, start: token.start, count: token.end - token.start,
        beginning: Self.beginning(contents(of: token)))
    }
    let start = unescapedNames.count
    let name = utf8(of: token)
    unescapedNames += name
    return unsafe MemberName(
      isUnescaped: true, start: start, count: name.count, beginning: name.withUnsafeBytes(Self.beginning))
  }

  /// Whether both are one name.
  func isSame(_ left: MemberName, _ right: MemberName) -> Bool {
    guard left.count == right.count, left.beginning == right.beginning else { return false }
    if left.count <= 8 { return true }
    return unsafe withBytes(left) { left in unsafe withBytes(right) { unsafe left.elementsEqual($0) } }
  }

  private static func beginning(_ name: UnsafeRawBufferPointer) -> UInt64 {
    if name.count >= 8 { return unsafe name.loadUnaligned(as: UInt64.self) }
    var beginning: UInt64 = 0
    for index in 0..<name.count { beginning = unsafe beginning << 8 | UInt64(name[index]) }
    return beginning
  }

  private func withBytes(_ name: MemberName, _ body: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    let place = name.start..<name.start + name.count
    guard name.isUnescaped else { return unsafe body(UnsafeRawBufferPointer(rebasing: bytes[place])) }
    return unsafe unescapedNames.withUnsafeBytes { unsafe body(UnsafeRawBufferPointer(rebasing: $0[place])) }
  }
}
