/// The names of keys in notes: they are not empty, and have no blanks, plus signs or control characters.
enum KeyName {
  static func isValid(_ name: some StringProtocol) -> Bool {
    !name.isEmpty && name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0 != "+" && !$0.properties.isWhitespace }
  }
}
