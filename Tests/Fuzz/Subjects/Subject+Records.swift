import AccountEvents
import AppleID
import Cryptography
import JSON
import Kafka

@testable import AccountServices
@testable import AccountStore

extension Subject {
  /// What is read from a record's value, or from the headers of one in the spool, is written as it is read again.
  static func checkRecords(_ bytes: [UInt8]) throws {
    if let event = taken({ () throws(EventDecodingError) in try AccountEvent(decoding: bytes) }) {
      let record = EventRecord(event, jws: nil)
      try promise("an event is read as it was written", try AccountEvent(decoding: record.value) == event)
      try promise("the key is team and subject", record.key == Array("\(event.team)/\(event.subject.text)".utf8))
    }
    if let key = taken({ () throws(EventDecodingError) in try AppleSigningKey(decoding: bytes) }) {
      let record = EventRecord(key)
      try promise("a key is read as it was written", try AppleSigningKey(decoding: record.value) == key)
      let modulus = Base64URL.decode(key.modulus)
      try promise("its modulus is a number in its only spelling", modulus.map { Base64URL.encode($0) } == key.modulus)
    }
    if let outcome = taken({ () throws(EventDecodingError) in try AccountOutcome(decoding: bytes) }) {
      let record = EventRecord(outcome)
      try promise("an outcome is read as it was written", try AccountOutcome(decoding: record.value) == outcome)
    }
    if let relay = taken({ () throws(EventDecodingError) in try RelayRecord(decoding: bytes) }) {
      try promise(
        "a relay state is read as it was written", try RelayRecord(decoding: EventRecord(relay).value) == relay)
    }
    try checkRecordLine(bytes)
    if let headers = [EventRecord.Header](packed: bytes) {
      try promise("what lies in the spool is read as it was written", headers.packed == bytes)
      try checkLetter(headers, on: .deadLetters(of: "data-eraser"), [])
      try checkLetter(headers, on: .quarantine, bytes)
    }
  }

  /// What a line of a file of records says is read as it was written, and no line commands a terminal.
  private static func checkRecordLine(_ bytes: [UInt8]) throws {
    let content: RecordLine.Content
    do throws(JSONError) { content = try RecordLine.read(bytes, of: "topic") } catch { return }
    guard case .record(let record) = content else { return }
    let line = RecordLine.record(record)
    try promise("nothing of a line commands a terminal", String(printable: line).utf8.elementsEqual(line))
    guard case .record(let again) = try RecordLine.read(line, of: "topic") else {
      throw BrokenPromise(description: "a record stays one")
    }
    try promise("a record is read as it was written", again == record)
  }

  /// Whatever headers a record on a topic of letters has, it is a letter that waits, or a note; and the note of what was
  /// decided takes the letter's place.
  private static func checkLetter(_ headers: [EventRecord.Header], on topic: LetterTopic, _ value: [UInt8]) throws {
    let headers = headers.map { KafkaHeader($0.name, $0.value) }
    func record(_ key: [UInt8]?, _ value: [UInt8]?, _ headers: [KafkaHeader], at offset: Int64) -> ConsumedRecord {
      ConsumedRecord(
        topic: topic.topic.name, position: KafkaPosition(partition: 0, offset: offset), key: key, value: value,
        headers: headers, timestamp: nil)
    }
    var letters = Letters(on: topic)
    letters.read(record(Array("apple.account-events.v1/3/17".utf8), value, headers, at: 0))
    guard let letter = letters.letters.first else { return }
    let (chosen, overtaken, unknown) = letters.select([letter.place])
    try promise("the one that waits can be chosen", chosen.count == 1 && overtaken == nil && unknown.isEmpty)
    for text in letter.facts.values {
      let shown = String(printable: text)
      try promise(
        "nothing of it commands a terminal", shown.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0 != "\u{7f}" })
    }
    guard let time = Timestamp(seconds: 1_800_000_000) else { return }
    var deciding = letters
    let notes = deciding.decide(letter, LetterDecision(.discarded, because: "any", by: "any", at: time))
    for (index, note) in notes.enumerated() {
      letters.read(record(note.key, note.value, note.headers, at: Int64(index + 1)))
    }
    try promise("what was discarded waits no more", letters.letters.isEmpty && deciding.letters.isEmpty)
  }

  /// A set of keys is refused whole, or every key of it is fit; and it can take its own place.
  static func checkKeys(_ bytes: [UInt8]) throws {
    guard let now = Timestamp(seconds: 1_657_617_152), let later = Timestamp(seconds: 1_700_000_000) else { return }
    let set: AppleKeySet
    do throws(AppleKeySetError) {
      set = try unsafe AppleKeySet(reading: bytes.span.bytes, at: now, after: .none)
    } catch {
      return try promise("the error has words", !error.description.isEmpty)
    }
    try promise("there are keys, each with a name of its own", !set.keyIDs.isEmpty && set.keyIDs.count <= 16)
    try promise("each has a name of its own", Set(set.keyIDs).count == set.keyIDs.count)
    for key in set.signingKeys {
      try promise("each is large enough", (set[key.id]?.bitCount ?? 0) >= 2048)
      try promise("each can be written and read", try AppleSigningKey(decoding: EventRecord(key).value) == key)
    }
    let members = set.signingKeys.map { key -> JSONValue in
      [
        "kty": "RSA", "kid": .string(key.id.text), "use": "sig", "alg": "RS256", "n": .string(key.modulus),
        "e": "AQAB",
      ]
    }
    let written = (["keys": .array(members)] as JSONValue).bytes
    let again = try unsafe AppleKeySet(reading: written.span.bytes, at: later, after: set)
    try promise("the same keys take their own place, and stay as old", again.signingKeys == set.signingKeys)
  }

  private static func taken<Value>(_ read: () throws(EventDecodingError) -> Value) -> Value? {
    do throws(EventDecodingError) { return try read() } catch { return nil }
  }
}
