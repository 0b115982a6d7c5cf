import JSON

/// The members of a JSON object that is the value of a record, as they were read: nil where one is missing or not of its
/// form.
protocol RecordMembers {
  /// Nothing read yet.
  init()

  /// Takes in a member. One that this version does not know is passed over, so that later versions may add to a record.
  mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError)
}

extension RecordMembers {
  /// Reads a record's value. The limits are far more than it has.
  init(
    of value: [UInt8], _ limits: JSONLimits = JSONLimits(bytes: 65_536, depth: 16, members: 64)
  ) throws(EventDecodingError) {
    do throws(JSONError) {
      self = try unsafe JSONReader.read(value.span.bytes, limits) { reader throws(JSONError) in
        guard try reader.kind == .object else { throw JSONError(.malformed, at: reader.offset) }
        return try Self(next: &reader)
      }
    } catch {
      throw EventDecodingError(reading: error)
    }
  }

  /// Reads the object that comes next.
  init(next reader: inout JSONReader) throws(JSONError) {
    var members = Self()
    try reader.readObject { name, value throws(JSONError) in try members.read(name, &value) }
    self = members
  }

  /// What was read, or the error that names the member.
  func required<Value>(_ value: Value?, _ name: String) throws(EventDecodingError) -> Value {
    guard let value else { throw EventDecodingError(code: .malformedMember, detail: name) }
    return value
  }
}
