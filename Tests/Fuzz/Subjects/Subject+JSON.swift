import JSON

extension Subject {
  /// What is read, written and read again is the same; and whoever skips a value accepts what a reader of it accepts.
  static func checkJSON(_ bytes: [UInt8]) throws {
    let limits = JSONLimits(bytes: 16_384, depth: 20, members: 20)
    let tree = Result { () throws(JSONError) in try JSONValue(reading: bytes, limits) }
    let skipped = Result { () throws(JSONError) in
      try unsafe JSONReader.read(bytes.span.bytes, limits) { _ throws(JSONError) in }
    }
    let swallowed = Result { () throws(JSONError) in
      try unsafe JSONReader.read(bytes.span.bytes, limits) { reader throws(JSONError) in swallow(&reader) }
    }
    try promise("whoever swallows errors accepts no other text", isSame(swallowed, skipped))
    switch (tree, skipped) {
    case (.failure(let error), .failure(let other)):
      try promise("whether it is read or skipped, the fault is the same", error == other)
      try promise("the fault is within the text", 0...bytes.count ~= error.offset)
    case (.success(let value), .success):
      // A number that is no integer is written as a longer text.
      let room = JSONLimits(bytes: 1 << 20, depth: 20, members: 20)
      let (written, canonical) = (value.bytes, value.canonicalBytes)
      try promise("written and read it is the same", try JSONValue(reading: written, room).bytes == written)
      let again = try JSONValue(reading: canonical, room)
      try promise("its canonical form is that of its canonical form", again.canonicalBytes == canonical)
    default: try promise("whoever skips a value accepts what a reader of it accepts", false)
    }
  }

  private static func isSame(_ left: Result<Void, JSONError>, _ right: Result<Void, JSONError>) -> Bool {
    switch (left, right) {
    case (.success, .success): true
    case (.failure(let left), .failure(let right)): left == right
    default: false
    }
  }

  /// Reads a whole tree and passes no error on.
  private static func swallow(_ reader: inout JSONReader) {
    do throws(JSONError) {
      switch try reader.kind {
      case .object: try reader.readObject { _, value throws(JSONError) in swallow(&value) }
      case .array: try reader.readArray { element throws(JSONError) in swallow(&element) }
      case .string: _ = try reader.readString()
      case .number: _ = try reader.readInteger()
      case .boolean: _ = try reader.readBoolean()
      case .null: _ = try reader.readRaw()
      }
    } catch {}
  }

  /// Whether the bytes are a JSON object within what a notification may hold.
  static func isObject(_ bytes: [UInt8]) -> Bool {
    do {
      let limits = JSONLimits(bytes: 1 << 20, depth: 128, members: 1000)
      return try unsafe JSONReader.read(bytes.span.bytes, limits) { reader throws(JSONError) in
        try reader.kind == .object
      }
    } catch { return false }
  }
}

extension JSONValue {
  /// Reads a whole tree. A number that is no integer becomes the text `number`.
  fileprivate init(reading bytes: [UInt8], _ limits: JSONLimits) throws(JSONError) {
    self = try unsafe JSONReader.read(bytes.span.bytes, limits) { reader throws(JSONError) in
      try JSONValue(reading: &reader)
    }
  }

  private init(reading reader: inout JSONReader) throws(JSONError) {
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
