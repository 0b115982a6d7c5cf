/// A string that was checked and not yet taken: where its contents stand between the quotation marks.
struct StringToken {
  let start: Int
  let end: Int
  let hasEscapes: Bool
}

extension JSONReader {
  /// Checks the string that begins here (RFC 8259 §7): its escapes, and that its bytes are UTF-8.
  mutating func scanString() throws(JSONError) -> StringToken {
    position += 1
    let start = position
    var hasEscapes = false
    while true {
      skipPlainText()
      guard let byte = current else { throw fault(.malformed, at: position) }
      switch byte {
      case UInt8(ascii: "\""):
        let token = StringToken(start: start, end: position, hasEscapes: hasEscapes)
        position += 1
        return token
      case UInt8(ascii: "\\"):
        hasEscapes = true
        try scanEscape()
      case 0x80...: try scanMultibyteCharacter(byte)
      default: throw fault(.malformed, at: position)  // a control character
      }
    }
  }

  /// Moves to the next byte that is not plain ASCII text, eight bytes at a time.
  private mutating func skipPlainText() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let high: UInt64 = 0x8080_8080_8080_8080
    var place = position
    while place &+ 8 <= end {
      let word = unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
      // The high bit of each byte says whether that byte is special; above the lowest one that is, a borrow may lie.
      let quote = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
      let backslash = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
      let control = (word &- ones &* 0x20) & ~word
      let special = (word | control | ((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash)) & high
      guard special == 0 else {
        position = place &+ special.trailingZeroBitCount / 8
        return
      }
      place &+= 8
    }
    position = place
    while let byte = current, byte >= 0x20, byte < 0x80, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
      position &+= 1
    }
  }

  /// Checks one character of two to four bytes by the table of RFC 3629 §4, which leaves out overlong forms,
  /// surrogates and what lies beyond U+10FFFF.
  private mutating func scanMultibyteCharacter(_ first: UInt8) throws(JSONError) {
    let count: Int
    var second: ClosedRange<UInt8> = 0x80...0xbf
    switch first {
    case 0xc2...0xdf: count = 2
    case 0xe0: (count, second) = (3, 0xa0...0xbf)
    case 0xed: (count, second) = (3, 0x80...0x9f)
    case 0xe1...0xef: count = 3
    case 0xf0: (count, second) = (4, 0x90...0xbf)
    case 0xf4: (count, second) = (4, 0x80...0x8f)
    case 0xf1...0xf3: count = 4
    default: throw fault(.invalidText, at: position)
    }
    guard position + count <= end, second.contains(byte(at: position + 1)) else {
      throw fault(.invalidText, at: position)
    }
    for offset in 2..<max(count, 2) where byte(at: position + offset) & 0xc0 != 0x80 {
      throw fault(.invalidText, at: position)
    }
    position += count
  }

  private mutating func scanEscape() throws(JSONError) {
    guard position + 2 <= end else { throw fault(.malformed, at: position) }
    guard byte(at: position + 1) == UInt8(ascii: "u") else {
      guard Self.escapedByte(byte(at: position + 1)) != nil else { throw fault(.malformed, at: position) }
      position += 2
      return
    }
    guard let unit = escapedUnit(at: position) else { throw fault(.malformed, at: position) }
    if 0xd800...0xdfff ~= unit {
      // Half a pair stands for nothing; readers disagree about what to make of it (RFC 8259 §8.2).
      guard unit < 0xdc00, let low = escapedUnit(at: position + 6), 0xdc00...0xdfff ~= low else {
        throw fault(.invalidText, at: position)
      }
      position += 6
    }
    position += 6
  }

  /// The UTF-16 code unit that `\u` with four digits at `offset` stands for; nil if something else is there.
  private func escapedUnit(at offset: Int) -> UInt32? {
    guard offset + 6 <= end, byte(at: offset) == UInt8(ascii: "\\") else { return nil }
    guard byte(at: offset + 1) == UInt8(ascii: "u") else { return nil }
    var unit: UInt32 = 0
    for digit in offset + 2..<offset + 6 {
      let byte = self.byte(at: digit)
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = unit << 4 | UInt32(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): unit = unit << 4 | UInt32(byte - UInt8(ascii: "a") + 10)
      case UInt8(ascii: "A")...UInt8(ascii: "F"): unit = unit << 4 | UInt32(byte - UInt8(ascii: "A") + 10)
      default: return nil
      }
    }
    return unit
  }

  /// What a backslash and `letter` stand for; nil where that is no escape.
  private static func escapedByte(_ letter: UInt8) -> UInt8? {
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): letter
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0c
    case UInt8(ascii: "n"): 0x0a
    case UInt8(ascii: "r"): 0x0d
    case UInt8(ascii: "t"): 0x09
    default: nil
    }
  }
}

extension JSONReader {
  /// The bytes between the quotation marks, as they stand in the text.
  func contents(of token: StringToken) -> UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(rebasing: bytes[token.start..<token.end])
  }

  /// The string that the token stands for.
  func text(of token: StringToken) -> String {
    let size = token.end - token.start
    return unsafe String(unsafeUninitializedCapacity: size) { output in
      if token.hasEscapes { return unsafe unescape(token, into: output) }
      unsafe UnsafeMutableRawBufferPointer(output).copyMemory(from: contents(of: token))
      return size
    }
  }

  /// The UTF-8 of the string that the token stands for.
  func utf8(of token: StringToken) -> [UInt8] {
    guard token.hasEscapes else { return unsafe [UInt8](contents(of: token)) }
    // No escape is shorter than what it stands for.
    var output = [UInt8](repeating: 0, count: token.end - token.start)
    let count = unsafe output.withUnsafeMutableBufferPointer { unsafe unescape(token, into: $0) }
    output.removeLast(output.count - count)
    return output
  }

  /// Writes the UTF-8 of a string that was checked, and says how many bytes it has.
  private func unescape(_ token: StringToken, into output: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var offset = token.start, count = 0
    while offset < token.end {
      let byte = unsafe bytes[offset]
      guard byte == UInt8(ascii: "\\") else {
        unsafe output[count] = byte
        count &+= 1
        offset &+= 1
        continue
      }
      if let plain = unsafe Self.escapedByte(bytes[offset &+ 1]) {
        unsafe output[count] = plain
        count &+= 1
        offset &+= 2
        continue
      }
      var scalar = escapedUnit(at: offset) ?? 0
      offset &+= 6
      if 0xd800...0xdbff ~= scalar {
        scalar = 0x10000 + (scalar & 0x3ff) << 10 + (escapedUnit(at: offset) ?? 0) & 0x3ff
        offset &+= 6
      }
      for unit in UTF8.encode(Unicode.Scalar(scalar) ?? "\u{fffd}") ?? UTF8.encodedReplacementCharacter {
        unsafe output[count] = unit
        count &+= 1
      }
    }
    return count
  }
}
