import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What an operator sees of letters and does about them.
@Suite struct LettersTests {
  private static let topic = "apple.account-events.sample.dead-letters.v1"
  private static let discarded = LetterDecision(
    .discarded, because: "a rehearsal", by: "grace", at: .sample(1_800_000_000_000))

  /// A letter of an event that stood at `origin`, as it stands at `offset` of the dead letters. `key` is that of earlier
  /// versions' letters.
  private func letter(
    _ number: Int, of user: String = "ada", origin: Int64, at offset: Int64, key: String? = nil,
    headers: [(String, String)] = []
  ) -> ConsumedRecord {
    let record = KafkaRecord.of(.sample(number, of: user))
    let place = [("topic", "apple.account-events.v1"), ("partition", "3"), ("offset", "\(origin)")]
    let own = [("cause", "not-ours"), ("key", "A1B2C3D4E5/\(user)")] + place + headers
    return ConsumedRecord(
      topic: Self.topic, position: KafkaPosition(partition: 0, offset: offset),
      key: Array((key ?? "apple.account-events.v1/3/\(origin)/event-\(number)").utf8), value: record.value,
      headers: record.headers + own.map { KafkaHeader("dead-letter-\($0.0)", $0.1) }, timestamp: nil)
  }

  private func standing(_ record: KafkaRecord, at offset: Int64) -> ConsumedRecord {
    ConsumedRecord(
      topic: record.topic, position: KafkaPosition(partition: 0, offset: offset), key: record.key, value: record.value,
      headers: record.headers, timestamp: nil)
  }

  private func letters(_ records: [ConsumedRecord], on topic: LetterTopic = .deadLetters(of: "sample")) -> Letters {
    var letters = Letters(on: topic)
    for record in records { letters.read(record) }
    return letters
  }

  @Test func whatWasPutAsideTwiceWaitsOnce() {
    let letters = letters([letter(1, origin: 7, at: 0), letter(2, origin: 8, at: 1), letter(1, origin: 7, at: 2)])
    // As the one that compaction keeps.
    #expect(letters.letters.map(\.place.description) == ["0/1", "0/2"])
  }

  @Test func whatWasHandledWaitsNoMoreUntilItIsPutAsideAgain() throws {
    var letters = letters([letter(1, origin: 7, at: 0), letter(2, origin: 8, at: 1)])
    let before = letters
    let notes = letters.decide(letters.letters[0], Self.discarded)
    #expect(notes.count == 1 && letters.letters.map(\.place.description) == ["0/1"])
    letters = before
    // It takes the letter's place, names nobody, and is no tombstone, which compaction would take away in turn.
    let mark = try #require(notes.first)
    #expect(mark.topic == Self.topic && mark.partition == 0 && mark.value == Array("discarded".utf8))
    #expect(mark.key == Array("apple.account-events.v1/3/7/event-1".utf8))
    #expect(
      mark.headers.map { "\($0.name) \(String(decoding: $0.value ?? [], as: UTF8.self))" } == [
        "handled discarded", "handled-letter 0/0", "handled-reason a rehearsal", "handled-by grace",
        "handled-time 2027-01-15T08:00:00.000Z",
      ])
    letters.read(standing(mark, at: 2))
    #expect(letters.letters.map(\.place.description) == ["0/1"])
    letters.read(letter(1, origin: 7, at: 3))
    #expect(letters.letters.map(\.place.description) == ["0/1", "0/3"])
  }

  @Test func aLetterOfATopicThatWasMadeAnewReplacesNone() {
    let letters = letters([letter(1, origin: 7, at: 0), letter(2, origin: 7, at: 1)])
    #expect(letters.letters.map { $0["ce_id"] } == ["event-1", "event-2"])
    #expect(letters.letters.map(\.origin?.description) == Array(repeating: "apple.account-events.v1/3/7", count: 2))
  }

  @Test func aLetterOfAnEarlierVersionIsReadAndClosed() throws {
    var letters = letters([
      letter(1, origin: 7, at: 0, key: "apple.account-events.v1/3/7"), letter(1, origin: 7, at: 1),
    ])
    #expect(letters.letters.map(\.origin?.description) == Array(repeating: "apple.account-events.v1/3/7", count: 2))
    let note = try #require(letters.decide(letters.letters[0], Self.discarded).first)
    #expect(note.key == Array("apple.account-events.v1/3/7".utf8))
    letters.read(standing(note, at: 2))
    #expect(letters.letters.map(\.place.description) == ["0/1"])
  }

  /// A record of the quarantine topic as earlier versions wrote it.
  private func formerlyQuarantined(_ id: String, key: String?, at offset: Int64) -> ConsumedRecord {
    let headers = [
      ("ce_id", id), ("ce_team", "A1B2C3D4E5"), ("ce_audience", "com.example.app"), ("ce_subject", "ada"),
      ("quarantine-reason", "expired"),
    ]
    return ConsumedRecord(
      topic: Topic.quarantine.name, position: KafkaPosition(partition: 0, offset: offset),
      key: key.map { Array($0.utf8) }, value: Array(#"{"type":"consent-revoked","sub":"ada"}"#.utf8),
      headers: headers.map { KafkaHeader($0.0, $0.1) }, timestamp: 1_800_000_000_000)
  }

  @Test func whatAnEarlierVersionQuarantinedUnderOneKeyIsDecidedAboutOneByOne() throws {
    let account = "A1B2C3D4E5/ada"
    var letters = letters(
      [
        formerlyQuarantined("a", key: account, at: 0), formerlyQuarantined("b", key: account, at: 1),
        formerlyQuarantined("c", key: nil, at: 2),
      ], on: .quarantine)
    #expect(letters.letters.map { $0["ce_id"] } == ["a", "b", "c"])
    #expect(letters.letters.map(\.cause) == Array(repeating: "expired", count: 3))
    #expect(letters.letters.map(\.type) == Array(repeating: "consent-revoked", count: 3))
    #expect(letters.letters.map(\.account) == Array(repeating: Array(account.utf8), count: 3))

    #expect(letters.letters.map(\.isFormer) == [true, true, true])

    func keys(_ records: [KafkaRecord]) -> [String] {
      records.map { "\(String(decoding: $0.key ?? [], as: UTF8.self))\($0.value == nil ? ": nothing" : "")" }
    }
    var read = letters
    // While the second letter of the account waits, nothing may take it away with the first.
    let first = letters.decide(letters.letters[0], Self.discarded)
    #expect(keys(first) == ["A1B2C3D4E5 com.example.app a"])
    let second = letters.decide(letters.letters[0], Self.discarded)
    #expect(keys(second) == ["\(account): nothing", "A1B2C3D4E5 com.example.app b"])
    for (index, note) in (first + second).enumerated() { read.read(standing(note, at: Int64(3 + index))) }
    #expect(read.letters.map { $0["ce_id"] } == ["c"])
    #expect(keys(letters.decide(letters.letters[0], Self.discarded)) == ["A1B2C3D4E5 com.example.app c"])
    #expect(letters.letters.isEmpty)
  }

  @Test func whatIsKnownOfALetterNamesNobody() {
    let letters = letters([formerlyQuarantined("a", key: "A1B2C3D4E5/ada", at: 0)], on: .quarantine)
    #expect(!letters.letters[0].facts.values.contains { $0.contains("ada") })
    let dead = self.letters([letter(1, origin: 7, at: 0)])
    #expect(!dead.letters[0].facts.values.contains { $0.contains("ada") })
  }

  @Test func aRetriedLetterIsTheRecordAsItWasForThatConsumerAlone() {
    let content = letter(1, origin: 7, at: 0)
    let letters = letters([content])
    let record = letters.letters[0].retry(content, to: "sample")
    let origin = KafkaRecord.of(.sample(1))
    #expect(record.topic == "apple.account-events.sample.retry.v1" && record.key == origin.key)
    #expect(record.value == origin.value)
    // And where it stood first, by which it keeps its place among the letters of its account.
    #expect(record.headers == origin.headers + [KafkaHeader("dead-letter-first", "apple.account-events.v1/3/7")])
  }

  @Test func aRecordWithoutAValueIsRetriedWithoutOne() {
    let content = letter(1, origin: 7, at: 0, headers: [("no-value", "true")])
    let letters = letters([content])
    #expect(letters.letters[0].retry(content, to: "sample").value == nil)
  }

  @Test func noLetterOvertakesAnEarlierOneOfItsAccount() {
    // The one that came first was put aside last.
    let letters = letters([
      letter(3, origin: 9, at: 0), letter(2, of: "bob", origin: 8, at: 1), letter(1, origin: 7, at: 2),
    ])
    let places = letters.letters.map(\.place)
    #expect(letters.select([places[0]]).overtaken?.place == places[2])
    #expect(letters.select([places[1]]).overtaken == nil)
    #expect(letters.select([places[2]]).overtaken == nil)
    let all = letters.select([places[2], places[0]])
    #expect(all.overtaken == nil && all.letters.map(\.place) == [places[2], places[0]])
    let none = LetterPlace(partition: 0, offset: 9)
    #expect(letters.select([none]).unknown == [none])
  }

  @Test func aLetterOfARetriedRecordKeepsItsPlaceInTheOrder() {
    let first = [("first", "apple.account-events.v1/3/5")]
    let letters = letters([letter(2, origin: 9, at: 0), letter(1, origin: 70, at: 1, headers: first)])
    let places = letters.letters.map(\.place)
    #expect(letters.select(Set(places)).letters.map(\.place) == [places[1], places[0]])
    #expect(letters.select([places[0]]).overtaken?.place == places[1])
  }

  @Test(arguments: [
    ("plain – 日本", "plain – 日本"), ("\u{1b}[2J", "\\u{1b}[2J"),
    ("a\nb\u{9b}c\u{202e}d\u{2028}", "a\\u{a}b\\u{9b}c\\u{202e}d\\u{2028}"),
  ])
  func nothingThatIsShownCommandsATerminal(_ text: String, _ shown: String) {
    #expect(String(printable: text) == shown)
    #expect(String(printable: Array(text.utf8)) == shown)
  }

  @Test(arguments: ["", "1", "1/", "/1", "-1/2", "1/-2", "1/2/3", "a/b", "1/9223372036854775808"])
  func aPlaceIsAPartitionAndAnOffset(_ text: String) {
    #expect(LetterPlace(text) == nil)
    #expect(LetterPlace("0/17") == LetterPlace(partition: 0, offset: 17))
  }
}
