import Testing

@testable import Kafka

@Suite struct PackedHeadersTests {
  @Test func headersAreTheSameAsTheyWere() {
    let headers = [
      KafkaHeader("ce_id", "1"), KafkaHeader("", ""), KafkaHeader("ce_id", nil as [UInt8]?),
      KafkaHeader("ünï", [0, 255]),
      KafkaHeader("long", [UInt8](repeating: 7, count: 70_000)),
    ]
    for count in 0...headers.count {
      let some = Array(headers.prefix(count))
      #expect(PackedHeaders(some).headers == some)
    }
    #expect(PackedHeaders(Array(headers.prefix(2))) != PackedHeaders(Array(headers.prefix(1))))
  }
}
