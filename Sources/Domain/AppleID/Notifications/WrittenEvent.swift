import AccountEvents
import JSON

/// One event as Apple wrote it: its text, and what it says as far as that has a form that we know.
struct WrittenEvent {
  /// The event's own text; nil where it is no JSON object.
  let json: ArraySlice<UInt8>?
  /// Whom the event is about, where that can be read.
  let subject: AppleSubject?
  /// What the event says, or why we cannot tell.
  let meaning: Meaning

  /// What an event says, or why we cannot tell.
  enum Meaning {
    case event(AccountEvent.Kind, AppleSubject, occurredAt: Timestamp)
    case unclear(QuarantinedEvent.Reason)
  }

  private static let limits = JSONLimits(bytes: UnverifiedNotification.maximumBodySize, depth: 64, members: 256)
  private static let illegible = WrittenEvent(json: nil, subject: nil, meaning: .unclear(.unknownForm))

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
          default: events.append(illegible)
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
      return illegible
    }
  }

  private init(json: ArraySlice<UInt8>?, subject: AppleSubject?, meaning: Meaning) {
    (self.json, self.subject, self.meaning) = (json, subject, meaning)
  }

  private init(reading reader: inout JSONReader, _ text: [UInt8]) throws(JSONError) {
    let start = reader.offset
    let members = try EventMembers(reading: &reader)
    json = text[start..<reader.offset]
    subject = members.subject.flatMap(AppleSubject.init)
    meaning = members.meaning(for: subject)
  }
}
