import AccountEvents
package import AccountStore
import EventLoop
package import Kafka

extension LetterBox {
  /// Gives dead letters to their consumer again, in their order, and notes that of each; returns after the last one.
  /// Where it throws, those before are done. A letter whose record is gone is left, and so is one that the retry topic never
  /// takes, with the later ones of its account; the others are retried.
  ///
  /// The note comes second: a letter that is retried twice has one effect, one that is noted only would have none.
  package func retry(
    _ some: [Letter], of letters: Letters, to consumer: ConsumerName, _ decision: LetterDecision,
    each done: (Letter, LetterOutcome) -> Void
  ) async throws(KafkaError) {
    var letters = letters
    // The first letter of each account that is not taken.
    var refused: [[UInt8]: LetterPlace] = [:]
    try await write { producer throws(KafkaError) in
      try await contents(of: some) { letter, content throws(KafkaError) in
        guard let content else { return done(letter, .left(letter.wordsOfLoss)) }
        if let earlier = letter.account.flatMap({ refused[$0] }) {
          return done(letter, .left("\(letter.place) stays: \(earlier) is of the same account and comes first"))
        }
        do throws(KafkaError) {
          _ = try await producer.send(letter.retry(content, to: consumer))
        } catch {
          // What is wrong with this one alone keeps no others.
          guard error.consequence == .permanent else { throw error }
          if let account = letter.account { refused[account] = letter.place }
          return done(letter, .left("\(letter.place) stays: Kafka refuses it: \(error)"))
        }
        try await note([letter], in: &letters, decision, with: producer, each: done)
      }
    }
  }
}
