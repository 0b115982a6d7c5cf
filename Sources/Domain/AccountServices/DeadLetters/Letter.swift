package import AccountEvents
import JSON
import Kafka

/// A letter that waits for a person: what is said of it without what it says.
package struct Letter: Sendable {
  /// Where it stands, which is what it is called by.
  package let place: LetterPlace
  /// The key of the note that takes its place.
  package let key: [UInt8]
  /// Whether an earlier version put it there, under another key or none.
  package let isFormer: Bool
  /// Its own key, where that is another one.
  let formerKey: [UInt8]?
  /// `TEAM/SUB`, where that is known. Personal data.
  package let account: [UInt8]?
  /// What the order of an account's dead letters goes by.
  let order: RecordOrigin?
  /// Where the record of a dead letter stood.
  package let origin: RecordOrigin?
  /// Why it is there.
  package let cause: String?
  /// The type of the event: of a quarantined one in Apple's word for it. Nil where nobody can tell.
  package let type: String?
  /// When it was put aside.
  package let putAsideAt: Timestamp?
  /// The headers without personal data.
  package let facts: [String: String]

  /// Whether the letter is not the record, but only says where it stands.
  package var isShortened: Bool { self[DeadLetter.Header.shortened] != nil }

  /// Whether the record did not prove what it says: nothing was done about it, and nothing it says is to be believed.
  package var isUnverified: Bool { cause == EventVerification.cause }

  /// Whether the record has proven what it says to the consumer that put it aside, or did not have to. Letters of earlier
  /// versions do not say so.
  package var isBelieved: Bool { self[DeadLetter.Header.believed] != nil }

  /// The text of a header without personal data; nil where there is none.
  package subscript(header: String) -> String? { facts[header] }

  init(_ record: ConsumedRecord, _ headers: [KafkaHeader], on topic: LetterTopic) {
    var facts: [String: String] = [:]
    for header in headers where LetterTopic.isImpersonal(header.name) {
      facts[header.name] = header.value.map { String(decoding: $0, as: UTF8.self) }
    }
    self.facts = facts
    place = LetterPlace(partition: record.position.partition, offset: record.position.offset)
    key = topic.key(of: record, facts)
    isFormer = topic == .quarantine && key != record.key
    formerKey = key == record.key ? nil : record.key
    cause = facts[topic.causeHeader]
    putAsideAt = record.timestamp.flatMap { Timestamp(milliseconds: $0) }
    switch topic {
    case .quarantine:
      account = facts["ce_team"].flatMap { team in
        headers.last { $0.name == "ce_subject" }?.value.map { Array("\(team)/".utf8) + $0 }
      }
      type = record.value.flatMap { Self.type(in: $0) }
      (origin, order) = (nil, nil)
    case .deadLetters:
      account = headers.last { $0.name == DeadLetter.Header.key }?.value
      type = facts["ce_type"]
      let origin = RecordOrigin(facts)
      self.origin = origin
      order = facts[DeadLetter.Header.first].flatMap { RecordOrigin($0) } ?? origin
    }
  }

  private static let limits = JSONLimits(bytes: 65_536, depth: 64, members: 1024)

  /// What Apple calls the event.
  private static func type(in value: [UInt8]) -> String? {
    do throws(JSONError) {
      return try unsafe JSONReader.read(value.span.bytes, limits) { reader throws(JSONError) in
        var type: String?
        guard try reader.kind == .object else { throw JSONError(.malformed, at: reader.offset) }
        try reader.readObject { name, member throws(JSONError) in
          if name == "type", try member.kind == .string { type = try member.readString() }
        }
        return type
      }
    } catch {
      return nil
    }
  }

  /// Whether it comes before another one: by where their records stood; by their places where that does not tell.
  func comesBefore(_ other: Self) -> Bool {
    guard order != other.order else { return place < other.place }
    guard let order else { return true }
    return other.order.map { order < $0 } ?? false
  }
}

extension RecordOrigin {
  /// As the headers of a dead letter say it.
  fileprivate init?(_ facts: [String: String]) {
    guard let topic = facts[DeadLetter.Header.topic], let partition = facts[DeadLetter.Header.partition],
      let offset = facts[DeadLetter.Header.offset]
    else { return nil }
    self.init("\(topic)/\(partition)/\(offset)")
  }
}

extension Letter {
  /// What is to be said where there is nothing to be read.
  package var wordsOfLoss: String {
    guard isShortened, let origin else {
      return "\(place) is not there any more: somebody has decided about it meanwhile"
    }
    return "\(place) only says where its record stood, and that is not there any more: \(origin)"
  }
}
