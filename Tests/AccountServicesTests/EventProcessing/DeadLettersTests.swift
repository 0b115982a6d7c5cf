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
  private func letter(_ number: Int, of user: String = "ada", origin: Int64, at offset: Int64) -> ConsumedRecord {
    let record = KafkaRecord.of(.sample(number, of: user))
    let headers = [
      ("cause", "not-ours"), ("topic", "apple.account-events.v1"), ("partition", "3"), ("offset", "\(origin)"),
    ]
    return ConsumedRecord(
      topic: Self.topic, position: KafkaPosition(partition: 0, offset: offset), key: record.key, value: record.value,
      headers: record.headers + headers.map { KafkaHeader("dead-letter-\($0.0)", $0.1) }, timestamp: nil)
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
    let letters = letters([letter(1, origin: 7, at: 0), letter(1, origin: 7, at: 1), letter(2, origin: 8, at: 2)])
    #expect(letters.letters.map(\.place.description) == ["0/0", "0/2"])
  }

  @Test func whatWasHandledWaitsNoMoreUntilItIsPutAsideAgain() throws {
    var letters = letters([letter(1, origin: 7, at: 0), letter(2, origin: 8, at: 1)])
    let mark = letters.mark(
      letters.letters[0], .discarded(reason: "a rehearsal"), by: "grace", at: .sample(1_800_000_000_000))
    #expect(mark.topic == Self.topic && mark.key == nil && mark.value == nil)
    #expect(
      mark.headers.suffix(5).map { "\($0.name) \(String(decoding: $0.value ?? [], as: UTF8.self))" } == [
        "handled discarded", "handled-letter 0/0", "handled-reason a rehearsal", "handled-by grace",
        "handled-time 2027-01-15T08:00:00.000Z",
      ])
    letters.read(standing(mark, at: 2))
    #expect(letters.letters.map(\.place.description) == ["0/1"])
    letters.read(letter(1, origin: 7, at: 3))
    #expect(letters.letters.map(\.place.description) == ["0/1", "0/3"])
  }

  @Test func aRetriedLetterIsTheRecordAsItWasForThatConsumerAlone() {
    let letters = letters([letter(1, origin: 7, at: 0)])
    let record = letters.retry(letters.letters[0])
    let origin = KafkaRecord.of(.sample(1))
    #expect(record.topic == "apple.account-events.sample.retry.v1" && record.key == origin.key)
    #expect(record.value == origin.value && record.headers == origin.headers)
  }

  @Test func noLetterOvertakesAnEarlierOneOfItsAccount() {
    let letters = letters([
      letter(1, origin: 7, at: 0), letter(2, of: "bob", origin: 8, at: 1), letter(3, origin: 9, at: 2),
    ])
    let places = letters.letters.map(\.place)
    #expect(letters.select([places[2]]).overtaken?.place == places[0])
    #expect(letters.select([places[1]]).overtaken == nil)
    let all = letters.select([places[2], places[0]])
    #expect(all.overtaken == nil && all.letters.map(\.place) == [places[0], places[2]])
    let none = LetterPlace(partition: 0, offset: 9)
    #expect(letters.select([none]).unknown == [none])
  }

  @Test(arguments: ["", "1", "1/", "/1", "-1/2", "1/-2", "1/2/3", "a/b", "1/9223372036854775808"])
  func aPlaceIsAPartitionAndAnOffset(_ text: String) {
    #expect(LetterPlace(text) == nil)
    #expect(LetterPlace("0/17") == LetterPlace(partition: 0, offset: 17))
  }
}
