package import AccountEvents
import AppleID
import EventLoop
package import Kafka

extension LetterBox {
  /// Every key of Apple's that ever verified something, by its name.
  package func signingKeys() async throws(KafkaError) -> [KeyID: AppleSigningKey] {
    var keys: [KeyID: AppleSigningKey] = [:]
    try await read(.signingKeys) { records in
      for record in records {
        guard let value = record.value else { continue }
        do throws(EventDecodingError) {
          let key = try AppleSigningKey(decoding: value)
          keys[key.id] = key
        } catch {
          // What it signed is refused as signed by a key that is not there.
          continue
        }
      }
      return true
    }
    return keys
  }

  /// Publishes quarantined events as the ingress would have, in the order in which they stand, and notes that of each;
  /// returns after the last one. What cannot be published, or what Kafka refuses for itself, is left. Without a decision nothing is written: it says what
  /// would be done.
  ///
  /// The note comes second, once the event is acknowledged. Where this ends between the two, the next release publishes
  /// the same record again, which is one effect: consumers know it by its id.
  package func release(
    _ some: [Letter], of letters: Letters, by release: QuarantineRelease, at now: Timestamp,
    _ decision: LetterDecision?,
    each done: (Letter, LetterOutcome) -> Void
  ) async throws(KafkaError) {
    var letters = letters
    var wanted = Dictionary(some.map { ($0.place, $0) }, uniquingKeysWith: { $1 })
    try await write { producer throws(KafkaError) in
      try await read(topic.topic) { records throws(KafkaError) in
        var publishable: [(letter: Letter, record: KafkaRecord)] = []
        for record in records {
          let place = LetterPlace(partition: record.position.partition, offset: record.position.offset)
          guard let letter = wanted.removeValue(forKey: place) else { continue }
          switch release.judge(record, at: now) {
          case .refuse(let words): done(letter, .left("\(place) stays: \(words)"))
          case .publish(let event): publishable.append((letter, KafkaRecord(event)))
          }
        }
        if let decision {
          let results = await producer.send(aloneIfTooLarge: publishable.map(\.record))
          let published = zip(publishable, results).filter { if case .success = $0.1 { true } else { false } }
          try await note(published.map { $0.0.letter }, in: &letters, decision, with: producer, each: done)
          for (attempt, result) in zip(publishable, results) {
            guard case .failure(let error) = result else { continue }
            guard error.consequence == .permanent else { throw error }
            done(attempt.letter, .left("\(attempt.letter.place) stays: Kafka refuses it: \(error)"))
          }
        } else {
          for (letter, _) in publishable { done(letter, .done) }
        }
        return !wanted.isEmpty
      }
    }
    for letter in wanted.values.sorted(by: { $0.place < $1.place }) { done(letter, .left(letter.wordsOfLoss)) }
  }
}

extension Producer {
  /// Sends records, and once more, each by itself, those that are refused as too large: a broker refuses a batch as a whole,
  /// whatever else is in it.
  package func send(aloneIfTooLarge records: [KafkaRecord]) async -> [Result<KafkaPosition, KafkaError>] {
    var results = await send(records)
    for (index, record) in records.enumerated() {
      guard case .failure(let error) = results[index], error.code == .recordTooLarge else { continue }
      do throws(KafkaError) { results[index] = .success(try await send(record)) } catch {
        results[index] = .failure(error)
      }
    }
    return results
  }
}
