import AccountEvents
import AccountServices
import AppleID
import Cryptography
import EventLoop
import Kafka
import TestSupport
import Testing

/// A key that is missing is waited for, and never for long.
@Loop @Suite(.timeLimit(.minutes(30))) struct SigningKeyBookTests {
  private let clock = ManualAlarm()
  private let log = CapturedLog()

  @Loop
  private final class Topic {
    var keys: [AppleSigningKey] = []
    var reads = 0
    var fault: KafkaError?

    func read() async throws(KafkaError) -> [AppleSigningKey] {
      reads += 1
      if let fault { throw fault }
      return keys
    }
  }

  private let topic = Topic()

  private func book() async throws -> SigningKeyBook {
    let book = SigningKeyBook(clock: clock, logger: log.logger(), reading: topic.read)
    try await book.read()
    return book
  }

  private func key() throws -> AppleSigningKey {
    let modulus = Base64URL.encode(try RSAPrivateKey(bitCount: 2048).modulus)
    let id = try #require(KeyID("fh6Bs8C"))
    return try #require(AppleSigningKey(id: id, modulus: modulus, firstSeen: AuditSamples.issuedAt))
  }

  @Test func aKeyThatHasComeMeanwhileIsThereAtOnce() async throws {
    let book = try await book()
    clock.advance(by: .seconds(1))
    topic.keys = [try key()]
    #expect(await book.renew(isKeyUnknown: true))
    #expect(book.ring.count == 1 && topic.reads == 2)
  }

  @Test func theTopicIsReadOnceASecondAndAKeyIsWaitedForSoLong() async throws {
    let book = try await book()
    for second in 1...10 {
      async let again = book.renew(isKeyUnknown: true)
      await clock.untilSet()
      clock.advance(by: .seconds(1))
      #expect(await again)
      #expect(topic.reads == second + 1)
    }
    #expect(await !book.renew(isKeyUnknown: true))
    #expect(log.lines.count { $0.contains("did not come") } == 1)
    // For a while none is waited for, but looked for.
    #expect(await !book.renew(isKeyUnknown: true))
    clock.advance(by: .seconds(1))
    #expect(await book.renew(isKeyUnknown: true))
    #expect(await !book.renew(isKeyUnknown: true))
    #expect(topic.reads == 12)
    clock.advance(by: SigningKeyBook.impatience)
    #expect(await book.renew(isKeyUnknown: true))
    async let again = book.renew(isKeyUnknown: true)
    await clock.untilSet()
    clock.advance(by: .seconds(1))
    #expect(await again)
  }

  /// A signature that does not hold becomes none by waiting: the topic is read once, in case the key is another by now.
  @Test func aSignatureThatIsNotTheKeysIsNotWaitedFor() async throws {
    let book = try await book()
    clock.advance(by: .seconds(1))
    #expect(await book.renew(isKeyUnknown: false))
    #expect(await !book.renew(isKeyUnknown: false))
    #expect(topic.reads == 2)
  }

  @Test func keysThatWereReadStayWhereTheTopicCannotBeRead() async throws {
    topic.keys = [try key()]
    let book = try await book()
    topic.fault = KafkaError(.brokerUnavailable, detail: "away")
    clock.advance(by: .seconds(1))
    #expect(await book.renew(isKeyUnknown: true))
    #expect(book.ring.count == 1 && log.lines.contains { $0.contains("could not be read again") })
    await #expect(throws: KafkaError.self) { try await book.read() }
  }
}
