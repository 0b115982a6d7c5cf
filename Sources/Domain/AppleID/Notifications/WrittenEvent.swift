import JSON

/// One event as Apple wrote it, taken apart as far as it has a form that we know.
struct WrittenEvent {
  /// The event's own text; nil where it is no JSON object.
  private(set) var json: ArraySlice<UInt8>?
  private(set) var type: String?
  private(set) var subject: String?
  private(set) var time: Int64?
  private(set) var email: String?
  private(set) var isPrivate: Bool?
  /// Whether `is_private_email` is there, but neither true nor false.
  private(set) var isPrivacyUnclear = false

  private static let limits = JSONLimits(bytes: UnverifiedNotification.maximumBodySize, depth: 64, members: 256)

  /// The events in `text`: a JSON object, or an array of objects and of strings that hold one each.
  ///
  /// Apple sends one object; its page and a talk of its engineers show the other forms. Nil where `text` has none of
  /// them.
  static func all(in text: [UInt8]) -> [WrittenEvent]? {
    do {
      return try unsafe JSONReader.read(text.span.bytes, limits) { reader throws(JSONError) in
        guard try reader.kind == .array else { return [try WrittenEvent(reading: &reader, text)] }
        var events: [WrittenEvent] = []
        try reader.readArray { element throws(JSONError) in
          switch try element.kind {
          case .object: events.append(try WrittenEvent(reading: &element, text))
          case .string: events.append(one(in: try element.readStringBytes()))
          default: events.append(WrittenEvent())
          }
        }
        return events
      }
    } catch {
      return nil
    }
  }

  private static func one(in text: [UInt8]) -> WrittenEvent {
    do {
      return try unsafe JSONReader.read(text.span.bytes, limits) { reader throws(JSONError) in
        try WrittenEvent(reading: &reader, text)
      }
    } catch {
      return WrittenEvent()
    }
  }

  private init() {}

  private init(reading reader: inout JSONReader, _ text: [UInt8]) throws(JSONError) {
    let start = reader.offset
    try reader.readObject { name, value throws(JSONError) in try read(name, &value) }
    json = text[start..<reader.offset]
  }

  /// A member of another kind than we know stays nil: the event is then of an unknown form, and the others are not.
  private mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch (name, try value.kind) {
    case ("type", .string): type = try value.readString()
    case ("sub", .string): subject = try value.readString()
    case ("event_time", .number):
      do {
        time = try value.readInteger()
      } catch  where error.code == .notAnInteger {
        time = nil
      }
    case ("email", .string): email = try value.readString()
    case ("is_private_email", .boolean): isPrivate = try value.readBoolean()
    case ("is_private_email", .string):
      switch try value.readString() {
      case "true": isPrivate = true
      case "false": isPrivate = false
      default: isPrivacyUnclear = true
      }
    case ("is_private_email", _): isPrivacyUnclear = true
    default: break
    }
  }
}
