import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What an operator sees of dead letters and does about them.
@Suite struct DeadLettersTests {
  private static let topic = "apple.account-events.sample.dead-letters.v1"

  /// A letter of an event that stood at `origin`, as it stands at `offset` of the dead letters.
  private func letter(
    _ number: Int, of user: String = "ada", origin: Int64, at offset: Int64, headers: [(String, String)] = []
  ) -> ConsumedRecord {
    let record = KafkaRecord.of(.sample(number, of: user))
    let place = [("topic", "apple.account-events.v1"), ("partition", "3"), ("offset", "\(origin)")]
    let own = [("cause", "not-ours"), ("key", "A1B2C3D4E5/\(user)")] + place + headers
    return ConsumedRecord(
      topic: Self.topic, position: KafkaPosition(partition: 0, offset: offset),
      key: Array("apple.account-events.v1/3/\(origin)".utf8), value: record.value,
      headers: record.headers + own.map { KafkaHeader("dead-letter-\($0.0)", $0.1) }, timestamp: nil)
  }

  private func standing(_ record: KafkaRecord, at offset: Int64) -> ConsumedRecord {
    ConsumedRecord(
      topic: record.topic, position: KafkaPosition(partition: 0, offset: offset), key: record.key, value: record.value,
      headers: record.headers, timestamp: nil)
  }

  private func letters(_ records: [ConsumedRecord]) -> DeadLetters {
    var letters = DeadLetters(of: "sample")
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
    let mark = letters.mark(
      letters.letters[0], .discarded(reason: "a rehearsal"), by: "grace", at: .sample(1_800_000_000_000))
    // It takes the letter's place, names nobody, and is no tombstone, which compaction would take away in turn.
    #expect(mark.topic == Self.topic && mark.partition == 0 && mark.value == Array("discarded".utf8))
    #expect(mark.key == Array("apple.account-events.v1/3/7".utf8))
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

  @Test func aRetriedLetterIsTheRecordAsItWasForThatConsumerAlone() {
    let content = letter(1, origin: 7, at: 0)
    let letters = letters([content])
    let record = letters.retry(letters.letters[0], content)
    let origin = KafkaRecord.of(.sample(1))
    #expect(record.topic == "apple.account-events.sample.retry.v1" && record.key == origin.key)
    #expect(record.value == origin.value)
    // And where it stood first, by which it keeps its place among the letters of its account.
    #expect(record.headers == origin.headers + [KafkaHeader("dead-letter-first", "apple.account-events.v1/3/7")])
  }

  @Test func aRecordWithoutAValueIsRetriedWithoutOne() {
    let content = letter(1, origin: 7, at: 0, headers: [("no-value", "true")])
    let letters = letters([content])
    #expect(letters.retry(letters.letters[0], content).value == nil)
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
