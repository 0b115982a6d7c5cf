extension String {
  /// Whether it is one to `limit` visible ASCII characters, none of which needs an escape in JSON.
  ///
  /// All identifiers are held to this once, when they are made: from then on their bytes go into keys, headers and
  /// values as they are.
  func isIdentifier(upTo limit: Int) -> Bool {
    let bytes = utf8
    return 1...limit ~= bytes.count && bytes.allSatisfy { 0x21...0x7e ~= $0 && $0 != 0x22 && $0 != 0x5c }
  }
}
