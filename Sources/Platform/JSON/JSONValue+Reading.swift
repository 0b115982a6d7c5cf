extension JSONValue {
  /// Reads a whole tree. Numbers that are no integers are refused: `.notAnInteger`.
  ///
  /// For small texts whose members are not known beforehand. Where they are, `JSONReader` builds nothing.
  public init(decoding text: [UInt8], _ limits: JSONLimits) throws(JSONError) {
    self = try unsafe JSONReader.read(text.span.bytes, limits) { reader throws(JSONError) in
      try JSONValue(next: &reader)
    }
  }

  /// Reads the value that comes next.
  private init(next reader: inout JSONReader) throws(JSONError) {
    switch try reader.kind {
    case .object:
      var members: [Member] = []
      try reader.readObject { name, value throws(JSONError) in members.append(Member(name, try JSONValue(next: &value)))
      }
      self = .object(members)
    case .array:
      var elements: [JSONValue] = []
      try reader.readArray { element throws(JSONError) in elements.append(try JSONValue(next: &element)) }
      self = .array(elements)
    case .string: self = .string(try reader.readString())
    case .number: self = .integer(try reader.readInteger())
    case .boolean: self = .boolean(try reader.readBoolean())
    case .null:
      _ = try reader.readRaw()
      self = .null
    }
  }

  /// The value of a member of an object; nil for every other value, and where there is no such member.
  public subscript(_ name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  /// The text of a string; nil for every other value.
  public var text: String? { if case .string(let text) = self { text } else { nil } }

  /// The number; nil for every other value.
  public var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
}
