import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// Which letters of erased accounts are closed without a person's decision.
@Loop @Suite struct ErasedLettersTests {
  private let revocation = AccountEvent.sample(1, .consentRevoked)
  private let deletion = AccountEvent.sample(2, .accountDelete)

  /// A dead letter of the data eraser, of the withdrawal of consent.
  private func letter() throws -> Letter {
    let record = KafkaRecord.of(revocation)
    let own = [("cause", "targets-incomplete"), ("key", "A1B2C3D4E5/ada")].map { KafkaHeader("dead-letter-\($0)", $1) }
    var letters = Letters(on: .deadLetters(of: .dataEraser))
    letters.read(
      ConsumedRecord(
        topic: Topic.deadLetters(of: .dataEraser).name, position: KafkaPosition(partition: 0, offset: 0),
        key: Array("a".utf8), value: record.value, headers: record.headers + own, timestamp: nil))
    return try #require(letters.letters.first)
  }

  /// The letter of an erasure that has left a target open: the deletion behind it has erased there, or never came to it.
  @Test func whatNoLaterErasureHasCoveredStays() async throws {
    let rig = try await EraserRig()
    let store = rig.process.store
    let judge = ErasedLetters(store, EventInterest.all(ConsentGroups([:])))
    let letter = try letter()
    func isMoot() async throws -> Bool {
      try await judge.areMoot([(letter, revocation)], on: .deadLetters(of: .dataEraser))[0]
    }
    func record(_ target: String, _ state: ErasureStep.State, _ event: EventReference) async throws {
      let step = ErasureStep(
        target: target, state: state, before: nil, affected: nil, after: nil, detail: "", time: ProcessorRig.now)
      try await store.record(step, of: event)
    }
    try await record("crm", .failed, .of(revocation, store))
    try await record("shop", .failed, .of(revocation, store))
    #expect(try await !isMoot(), "it may be retried")
    let later = EventReference.of(deletion, store, severity: 2)
    try await record("shop", .erased, later)
    _ = try await store.settle(
      [
        Settlement(
          of: later, by: .dataEraser, outcome: "account-erased", changes: [.eraseAccount(isFinal: true)])
      ], at: ProcessorRig.now)
    #expect(try await judge.erased(among: [letter]).count == 1)
    #expect(try await !isMoot(), "the policy did not name crm any more")
    try await record("crm", .erased, later)
    #expect(try await isMoot())
    // Somebody has written the id of an event whose erasure is open, in the name of the one who is erased.
    let (bob, sample) = (AccountEvent.sample(9, of: "bob", .consentRevoked), AccountEvent.sample(1, .consentRevoked))
    try await record("shop", .failed, .of(bob, store))
    let forged = AccountEvent(
      id: bob.id, team: sample.team, audience: sample.audience, subject: sample.subject, kind: .consentRevoked,
      occurredAt: sample.occurredAt, issuedAt: sample.issuedAt)
    #expect(try await judge.areMoot([(letter, forged)], on: .deadLetters(of: .dataEraser)) == [false])
    await rig.process.drain()
  }
}
