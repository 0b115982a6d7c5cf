/// The character classes of RFC 9110 and RFC 9112.
enum Characters {
  /// token = 1*tchar
  static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
      UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
      true
    default: false
    }
  }

  /// What a field's value may hold: visible characters, space, tab, and bytes beyond ASCII, which stay opaque.
  static func isFieldValue(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7f || byte == 0x09 }

  /// What a request target may hold: visible ASCII without the fragment's mark and what RFC 3986 never lets through.
  static func isTarget(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "#"), UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"),
      UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
      false
    default: byte > 0x20 && byte < 0x7f
    }
  }

  /// What a host's name may hold, or an IPv4 address.
  static func isName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"), UInt8(ascii: "%"):
      true
    default: false
    }
  }

  static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  static func hexValue(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
    default: nil
    }
  }

  /// The letter in lower case; everything else as it is.
  static func lowered(_ byte: UInt8) -> UInt8 { byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte }
}

extension Span<UInt8> {
  /// Whether the range holds exactly these bytes.
  func has(_ range: Range<Int>, _ text: StaticString) -> Bool {
    guard range.count == text.utf8CodeUnitCount else { return false }
    for index in 0..<range.count {
      let wanted = unsafe text.utf8Start[index]
      if self[range.lowerBound + index] != wanted { return false }
    }
    return true
  }

  /// Whether the range holds these bytes, which are given in lower case, in any case of letters.
  func hasIgnoringCase(_ range: Range<Int>, _ lowered: StaticString) -> Bool {
    guard range.count == lowered.utf8CodeUnitCount else { return false }
    for index in 0..<range.count {
      let wanted = unsafe lowered.utf8Start[index]
      if Characters.lowered(self[range.lowerBound + index]) != wanted { return false }
    }
    return true
  }

  /// The range as text; bytes that are not UTF-8 are replaced.
  func text(_ range: Range<Int>) -> String {
    unsafe extracting(range).withUnsafeBufferPointer { bytes in unsafe String(decoding: bytes, as: UTF8.self) }
  }

  /// Without blanks at both ends.
  func trimmed(_ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, Characters.isBlank(self[start]) { start += 1 }
    while end > start, Characters.isBlank(self[end - 1]) { end -= 1 }
    return start..<end
  }
}
