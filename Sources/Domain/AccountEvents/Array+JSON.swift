import JSON

/// The pieces of a record's value: what stands before a member's value, and the value.
extension [UInt8] {
  /// A text that needs no escape.
  mutating func append(_ before: String, _ identifier: String) {
    append(contentsOf: before.utf8)
    append(contentsOf: identifier.utf8)
  }

  /// A text that may need some, which brings its quotation marks.
  mutating func append(_ before: String, escaping text: String) {
    append(contentsOf: before.utf8)
    JSON.append(text, to: &self)
  }

  /// A number.
  mutating func append(_ before: String, _ number: Int64) {
    append(contentsOf: before.utf8)
    JSON.append(number, to: &self)
  }
}
