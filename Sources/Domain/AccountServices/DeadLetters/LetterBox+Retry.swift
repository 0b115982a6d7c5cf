import AccountEvents
package import AccountStore
import EventLoop
package import Kafka

extension LetterBox {
  /// Gives dead letters to their consumer again, in their order, and notes that of each; returns after the last one.
  /// Where it throws, those before are done. A letter whose record is gone is left, and the next one is retried.
  ///
  /// The note comes second: a letter that is retried twice has one effect, one that is noted only would have none.
  package func retry(
    _ some: [Letter], of letters: Letters, to consumer: ConsumerName, _ decision: LetterDecision,
    each done: (Letter, LetterOutcome) -> Void
  ) async throws(KafkaError) {
    var letters = letters
    try await write { producer throws(KafkaError) in
      try await contents(of: some) { letter, content throws(KafkaError) in
        guard let content else { return done(letter, .left(letter.wordsOfLoss)) }
        _ = try await producer.send(letter.retry(content, to: consumer))
        try await note([letter], in: &letters, decision, with: producer, each: done)
      }
    }
  }
}
