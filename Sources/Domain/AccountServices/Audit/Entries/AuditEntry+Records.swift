package import AccountEvents
import Cryptography
import JSON
package import Kafka

extension AuditEntry.Source {
  /// The source of an entry about a record.
  package init(_ record: ConsumedRecord) {
    self.init(RecordOrigin(record), at: record.timestamp.flatMap { Timestamp(milliseconds: $0) })
  }
}

extension AuditEntry.Effect {
  /// As large as the outcome of a thousand targets.
  private static let limits = JSONLimits(bytes: 1 << 20, depth: 16, members: 8192)

  /// What a record on `Topic.outcomes` says; nil where its value is no outcome.
  ///
  /// Members that this version does not know are taken over: whoever wrote them knows what they mean.
  package init?(_ record: ConsumedRecord) {
    guard let value = record.value else { return nil }
    let json: JSONValue
    do throws(JSONError) { json = try JSONValue(decoding: value, Self.limits) } catch { return nil }
    guard case .object(let members) = json, let cause = Self.cause(of: json) else { return nil }
    (source, self.cause, outcome, abridged) = (AuditEntry.Source(record), cause, json.canonicalBytes, nil)
    guard !fits else { return }
    outcome = JSONValue.object(members.filter { $0.name != "targets" }).canonicalBytes
    abridged = SHA256.digest(of: value)
    guard fits else { return nil }
  }

  private var fits: Bool { AuditEntry.effect(self).bytes.count <= AuditEntry.maximumSize }
}

extension AuditEntry.Decision {
  /// The most that is taken over of a text that a person wrote, in bytes: more than `siwa` takes.
  private static let longestText = 4096

  /// What a record on a topic of letters says of a decision; nil where it is a letter, or a tombstone.
  package init?(_ record: ConsumedRecord, on topic: LetterTopic) {
    guard record.value != nil else { return nil }
    let headers = record.headers
    func text(_ name: String) -> String? {
      headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
    guard let handled = text(LetterDecision.Header.handled), let handling = LetterDecision.Handling(rawValue: handled)
    else { return nil }
    let source = AuditEntry.Source(record)
    guard let time = text(LetterDecision.Header.time).flatMap({ Timestamp(rfc3339: $0) }) ?? source.time else {
      return nil
    }
    let named = topic.event(named: record.key ?? [])
    self.init(
      Kind(handling), at: source, time: time,
      by: Self.bounded(text(LetterDecision.Header.person) ?? ""),
      because: text(LetterDecision.Header.reason).map { Self.bounded($0) },
      letter: text(LetterDecision.Header.place).flatMap { LetterPlace($0) }, id: named?.id, team: named?.team,
      audience: named?.audience)
  }

  /// The request for an erasure that stands in a record's headers; nil where nobody asked for one.
  ///
  /// The account's own identifier, should a person have written it there, is left out.
  package init?(_ event: AccountEvent, _ headers: [KafkaHeader], at source: AuditEntry.Source) {
    func text(_ name: String) -> String? {
      headers.last { $0.name == name }?.value.map { value in
        Self.bounded(String(decoding: value, as: UTF8.self).replacing(event.subject.text, with: "…"))
      }
    }
    guard let person = text(EventRecord.requestedByHeader) else { return nil }
    self.init(
      .erasureRequested, at: source, time: event.occurredAt, by: person,
      because: text(EventRecord.requestReasonHeader), letter: nil, id: event.id, team: event.team,
      audience: event.audience)
  }

  private static func bounded(_ text: String) -> String {
    guard text.utf8.count > longestText else { return text }
    var end = text.utf8.index(text.utf8.startIndex, offsetBy: longestText)
    while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
    return String(text[..<end]) + "…"
  }
}

extension AuditEntry.Decision.Kind {
  fileprivate init(_ handling: LetterDecision.Handling) {
    switch handling {
    case .released: self = .released
    case .discarded: self = .discarded
    case .retried: self = .retried
    }
  }
}

extension LetterTopic {
  /// The event that the key of a letter or a note names; nil where it is a key of an earlier version, which may name a
  /// person.
  fileprivate func event(named key: [UInt8]) -> (id: EventID, team: TeamID?, audience: ClientID?)? {
    let key = String(decoding: key, as: UTF8.self)
    switch self {
    case .quarantine:
      let parts = key.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 3, let team = TeamID(parts[0]), let audience = ClientID(parts[1]),
        let id = EventID(parts[2])
      else { return nil }
      return (id, team, audience)
    case .deadLetters:
      let parts = key.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
      // A record without an id is called by its time there, or by nothing.
      guard parts.count == 4, RecordOrigin(parts[..<3].joined(separator: "/")) != nil, Int64(parts[3]) == nil,
        parts[3] != "-", let id = EventID(String(parts[3]))
      else { return nil }
      return (id, nil, nil)
    }
  }
}
