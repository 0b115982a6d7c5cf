/// A value of a YAML document, and the line on which it begins.
struct YAMLNode: Sendable {
  enum Content: Sendable {
    /// Text as it stands in the file: its declaration says what it means, not its look.
    case scalar(String, isQuoted: Bool)
    case sequence([YAMLNode])
    case mapping([YAMLEntry])
  }

  let line: Int
  let content: Content

  /// Whether it is what YAML calls null: nothing, `~` or `null`, without quotation marks.
  var isNull: Bool {
    guard case .scalar(let text, isQuoted: false) = content else { return false }
    return ["", "~", "null", "Null", "NULL"].contains(text)
  }

  /// The entries of a mapping; nothing at all is an empty one, as where all of its entries are commented out.
  var entries: [YAMLEntry]? {
    if case .mapping(let entries) = content { return entries }
    return isNull ? [] : nil
  }

  /// The value of the first entry with the given key.
  subscript(key: String) -> YAMLNode? { entries?.first { $0.key == key }?.value }
}

/// One `key: value` of a mapping.
struct YAMLEntry: Sendable {
  let key: String
  let line: Int
  let value: YAMLNode
}
