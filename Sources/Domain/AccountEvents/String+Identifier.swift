extension String {
  /// Whether it is one to `limit` visible ASCII characters, none of which needs an escape in JSON.
  ///
  /// All identifiers are held to this once, when they are made: from then on their bytes go into keys, headers and
  /// values as they are.
  func isIdentifier(upTo limit: Int) -> Bool {
    let bytes = utf8.span
    guard 1...limit ~= bytes.count else { return false }
    for index in bytes.indices {
      let byte = bytes[index]
      guard 0x21...0x7e ~= byte, byte != 0x22, byte != 0x5c else { return false }
    }
    return true
  }
}
