extension JSONReader {
  /// The byte that comes next; nil at the end of the text.
  var current: UInt8? { position < end ? byte(at: position) : nil }

  /// The byte at an offset inside the text.
  func byte(at offset: Int) -> UInt8 {
    precondition(0..<end ~= offset, "outside the text")
    return unsafe bytes[offset]
  }

  /// Moves past the white space of RFC 8259 §2.
  mutating func skipWhitespace() {
    while let byte = current,
      byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
        || byte == UInt8(ascii: "\t")
    {
      position &+= 1
    }
  }

  /// Moves past `byte`, which must come next.
  mutating func expect(_ byte: UInt8) throws(JSONError) {
    guard current == byte else { throw fault(.malformed, at: position) }
    position += 1
  }

  /// Moves past `true`, `false` or `null`.
  mutating func scanWord(_ word: StaticString) throws(JSONError) {
    let start = position
    for index in 0..<word.utf8CodeUnitCount {
      guard unsafe current == word.utf8Start[index] else { throw fault(.malformed, at: start) }
      position += 1
    }
  }

  /// Moves past a number (RFC 8259 §6).
  mutating func scanNumber() throws(JSONError) {
    if current == UInt8(ascii: "-") { position += 1 }
    if current == UInt8(ascii: "0") { position += 1 } else { try scanDigits() }
    if current == UInt8(ascii: ".") {
      position += 1
      try scanDigits()
    }
    if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
      position += 1
      if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
      try scanDigits()
    }
  }

  private mutating func scanDigits() throws(JSONError) {
    guard let first = current, isDigit(first) else { throw fault(.malformed, at: position) }
    while let byte = current, isDigit(byte) { position &+= 1 }
  }

  /// Moves past a number and gives its value, if it is an integer that every reader of JSON reads alike.
  mutating func scanInteger() throws(JSONError) -> Int64 {
    let start = position
    try scanNumber()
    let isNegative = byte(at: start) == UInt8(ascii: "-")
    var value: Int64 = 0
    for offset in start + (isNegative ? 1 : 0)..<position {
      let byte = self.byte(at: offset)
      guard isDigit(byte) else { throw JSONError(.notAnInteger, at: start) }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
      guard value < 1 << 53 else { throw JSONError(.notAnInteger, at: start) }
    }
    return isNegative ? -value : value
  }

  private func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
}
