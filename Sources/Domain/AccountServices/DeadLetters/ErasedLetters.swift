package import AccountEvents
package import AccountStore
package import EventLoop

/// Judges which letters of erased accounts are moot: by the ledgers of the consumers that their events concern, nothing
/// would follow from them.
@Loop
package struct ErasedLetters {
  /// How many letters the store is asked about at once.
  private static let group = 256

  private let store: any AccountStore
  private let consumers: [EventInterest]

  /// A judge by a store; `consumers` are those whose interest in events is known.
  package init(_ store: any AccountStore, _ consumers: [EventInterest]) {
    (self.store, self.consumers) = (store, consumers)
  }

  /// The letters whose accounts are erased and have not signed in since.
  package func erased(among letters: [Letter]) async throws(AccountStoreError) -> [Letter] {
    var erased: [Letter] = []
    let known = letters.compactMap { letter in
      letter.account.flatMap { Account(key: String(decoding: $0, as: UTF8.self)) }.map { (letter, $0) }
    }
    for some in known.groups(of: Self.group) {
      let states = try await store.relayStates(of: some.map(\.1))
      for (letter, state) in zip(some.map(\.0), states) { if case .erased = state { erased.append(letter) } }
    }
    return erased
  }

  /// Whether each of these is moot; `event` is what a letter says, nil where it cannot be read or believed. A dead letter
  /// concerns the consumer that wrote it, a quarantined event every consumer that has an interest in it.
  package func areMoot(
    _ letters: [(letter: Letter, event: AccountEvent?)], on topic: LetterTopic
  ) async throws(AccountStoreError) -> [Bool] {
    let concerned = consumers.filter { consumer in
      if case .deadLetters(let owner) = topic { owner == consumer.name } else { true }
    }
    var areMoot: [Bool] = []
    for some in letters.groups(of: Self.group) {
      // Whatever cannot be read, or is of a consumer of somebody's own, is for a person to look at.
      var answers = some.map { $0.event != nil && !concerned.isEmpty }
      for consumer in concerned {
        let asked = some.indices.compactMap { index in
          some[index].event.flatMap { event in
            consumer.interest(event).map { (index, reference(to: event, some[index].letter, topic, $0)) }
          }
        }
        let standings = try await store.standings(of: asked.map(\.1), for: consumer.name)
        let uncovered = consumer.name == .dataEraser ? try await store.uncoveredTargets(of: asked.map(\.1)) : []
        for (place, (index, _)) in asked.enumerated() {
          let isOver = standings[place].isOver(leaving: uncovered.isEmpty ? [] : uncovered[place])
          if !isOver { answers[index - some.startIndex] = false }
        }
      }
      areMoot += answers
    }
    return areMoot
  }

  private func reference(
    to event: AccountEvent, _ letter: Letter, _ topic: LetterTopic, _ interest: Interest
  ) -> EventReference {
    EventReference(
      id: event.id, account: event.account, hash: store.hash(of: event.account), occurredAt: event.occurredAt,
      origin: EventOrigin(topic: topic.topic.name, partition: letter.place.partition, offset: letter.place.offset),
      weight: interest.weight, yieldsTo: interest.yieldsTo)
  }
}

extension Array {
  fileprivate func groups(of size: Int) -> [ArraySlice<Element>] {
    stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
  }
}

extension EventStanding {
  /// Whether nothing would follow from the event, of which no weightier erasure covers these targets. Where the person has
  /// signed in since, a target may still hold what was to be erased, and a person has to decide about that.
  fileprivate func isOver(leaving targets: [String]) -> Bool {
    switch self {
    case .settled, .superseded(.newerEvent), .superseded(.erased): targets.isEmpty
    case .open, .superseded(.newerSignIn): false
    }
  }
}
