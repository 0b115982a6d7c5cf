import AccountEvents
import AccountServices
import AppleSimulator
import Kafka

/// Tells what arrives on the topics: whom it is about, where it stands, and what it follows from.
struct Story {
  /// What was told of an event, for what follows from it.
  private struct Beginning {
    let type: String
    let who: String
    /// When it was put onto the topic, in milliseconds since 1970.
    let time: Int64?
  }

  /// More are not under way at once.
  private static let most = 1000

  private var names: [String: String] = [:]
  private var beginnings: [String: Beginning] = [:]
  /// What follows from events that were not told yet.
  private var early: [String: [ConsumedRecord]] = [:]

  /// Somebody who is called by a name from now on.
  mutating func introduce(_ person: Person, as name: String) {
    if names.count >= Self.most { names = [:] }
    names[person.subject] = name
  }

  /// What there is to be said of a record, a line each: its type, or what came of its event, is the first word. What
  /// follows from an event is told after it, though each topic is read by itself.
  mutating func tell(_ record: ConsumedRecord) throws -> [(type: String, line: String)] {
    switch (record.topic, record.value) {
    case (Topic.accountEvents.name, let value?):
      let event = try AccountEvent(decoding: value)
      let who = name(of: event.subject.text)
      if beginnings.count >= Self.most { (beginnings, early) = ([:], [:]) }
      beginnings[event.id.text] = Beginning(type: event.kind.name, who: who, time: record.timestamp)
      let line = Self.line(event.kind.name, who, record, "")
      return try [(event.kind.name, line)] + (early.removeValue(forKey: event.id.text) ?? []).flatMap { try tell($0) }
    case (Topic.outcomes.name, let value?):
      let outcome = try AccountOutcome(decoding: value)
      let type = outcome.name.rawValue
      let more = outcome.reason.map { ": \($0.rawValue)" } ?? outcome.targets.map(\.words).joined()
      return follows(type, type, from: outcome.cause.id, record, more)
    case (Topic.emailRelay.name, let value?):
      let mail = try RelayRecord(decoding: value)
      return follows("email-relay", "mail \(mail.state.status.rawValue)", from: mail.event, record, "")
    case (Topic.emailRelay.name, nil):
      let key = String(decoding: record.key ?? [], as: UTF8.self)
      let subject = key.split(separator: "/", maxSplits: 1).last.map(String.init) ?? ""
      return [("tombstone", Self.line("  mail unknown", name(of: subject), record, ""))]
    default: return [("other", Self.line("for a person", "", record, ""))]
    }
  }

  private func name(of subject: String) -> String { names[subject] ?? subject }

  private mutating func follows(
    _ type: String, _ what: String, from event: EventID, _ record: ConsumedRecord, _ more: String
  ) -> [(type: String, line: String)] {
    guard let beginning = beginnings[event.text] else {
      early[event.text, default: []].append(record)
      return []
    }
    // Of both people, whoever is erased first.
    let type = type == AccountOutcome.Name.accountErased.rawValue ? "\(type) after \(beginning.type)" : type
    let pause = beginning.time.flatMap { begin in record.timestamp.map { "\($0 - begin) ms " } } ?? ""
    return [(type, Self.line("  \(what)", beginning.who, record, "\(pause)after \(beginning.type)\(more)"))]
  }

  private static func line(_ what: String, _ who: String, _ record: ConsumedRecord, _ more: String) -> String {
    func padded(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(1, width - text.count))
    }
    let place = "\(record.topic) \(record.position.partition)/\(record.position.offset)"
    return padded(what, 28) + padded(who, 20) + (more.isEmpty ? place : padded(place, 34) + more)
  }
}

extension AccountOutcome.Target {
  /// What an erasure came to.
  var words: String {
    let counts = [("found", before), ("rows erased", affected), ("left", after)]
      .compactMap { name, count in count.map { "\($0) \(name)" } }
    return "; \(name) \(state)" + (counts.isEmpty ? "" : ": \(counts.joined(separator: ", "))")
      + (note.map { " (\(String(printable: $0)))" } ?? "")
  }
}
