import Glibc

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

/// What is kept of an object's names so far, to find one among them: fast for the few that most objects have, and in
/// proportion to their length for the many that somebody may send.
struct SeenNames {
  /// So many names are compared one by one.
  static let few = 64

  /// One bit for each name, by a hash that anybody can work out: only where its bit is set are names compared.
  var bits: UInt64 = 0
  /// All names once there are more than a few, by a hash that nobody outside of this process can work out.
  var many: Set<[UInt8]> = []
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

  /// Whether the name is one of those in `names` from `first` on, which are what `seen` has; it has this one from now on.
  func isKnown(_ name: MemberName, since first: Int, _ seen: inout SeenNames) -> Bool {
    if names.count - first < SeenNames.few {
      let mayBeKnown = seen.bits & name.bit != 0
      seen.bits |= name.bit
      guard mayBeKnown else { return false }
      for index in first..<names.count where isSame(names[index], name) { return true }
      return false
    }
    if seen.many.isEmpty { for index in first..<names.count { seen.many.insert(text(of: names[index])) } }
    return !seen.many.insert(text(of: name)).inserted
  }

  /// Whether both are one name.
  private func isSame(_ left: MemberName, _ right: MemberName) -> Bool {
    guard left.count == right.count, left.beginning == right.beginning else { return false }
    if left.count <= 8 { return true }
    let count = left.count
    return unsafe withBytes(left) { left in
      unsafe withBytes(right) { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return true }
        return unsafe memcmp(left, right, count) == 0
      }
    }
  }

  private static func beginning(_ name: UnsafeRawBufferPointer) -> UInt64 {
    if name.count >= 8 { return unsafe name.loadUnaligned(as: UInt64.self) }
    var beginning: UInt64 = 0
    for index in 0..<name.count { beginning = unsafe beginning << 8 | UInt64(name[index]) }
    return beginning
  }

  private func text(of name: MemberName) -> [UInt8] { unsafe withBytes(name) { unsafe Array($0) } }

  private func withBytes<Value>(_ name: MemberName, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
    let place = name.start..<name.start + name.count
    guard name.isUnescaped else { return unsafe body(UnsafeRawBufferPointer(rebasing: bytes[place])) }
    return unsafe unescapedNames.withUnsafeBytes { unsafe body(UnsafeRawBufferPointer(rebasing: $0[place])) }
  }
}
