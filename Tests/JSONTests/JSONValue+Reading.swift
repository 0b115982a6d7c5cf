import JSON

extension JSONLimits {
  static let ofTests = JSONLimits(bytes: 100_000, depth: 20, members: 20)
}

extension JSONValue {
  /// Reads a whole tree. Numbers that are no integers become `.string("number")`: only their place matters.
  init(reading text: [UInt8], _ limits: JSONLimits = .ofTests) throws(JSONError) {
    self = try unsafe JSONReader.read(text.span.bytes, limits) { reader throws(JSONError) in
      try JSONValue(reading: &reader)
    }
  }

  init(reading reader: inout JSONReader) throws(JSONError) {
    switch try reader.kind {
    case .object:
      var members: [Member] = []
      try reader.readObject { name, value throws(JSONError) in
        members.append(Member(name, try JSONValue(reading: &value)))
      }
      self = .object(members)
    case .array:
      var elements: [JSONValue] = []
      try reader.readArray { element throws(JSONError) in elements.append(try JSONValue(reading: &element)) }
      self = .array(elements)
    case .string: self = .string(try reader.readString())
    case .number:
      do {
        self = .integer(try reader.readInteger())
      } catch  where error.code == .notAnInteger {
        self = .string("number")
      }
    case .boolean: self = .boolean(try reader.readBoolean())
    case .null:
      _ = try reader.readRaw()
      self = .null
    }
  }
}

/// Checks a whole text without looking at any of its values.
func check(_ text: [UInt8], _ limits: JSONLimits = .ofTests) throws(JSONError) {
  try unsafe JSONReader.read(text.span.bytes, limits) { _ throws(JSONError) in }
}
