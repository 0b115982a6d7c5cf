import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import Cryptography
import EventLoop
import TestSupport
import Testing

/// `siwa store prune`, on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct PruneCommandTests {
  @Test func nothingIsForgottenWhoseRecordMayBeReadAgain() async throws {
    let apple = AppleSide(
      origin: "https://127.0.0.1:9", certificate: "/nowhere", privateKey: "/nowhere",
      key: DeveloperKey(id: "ABC123DEFG", privateKeyPEM: try P256PrivateKey().pem()))
    try await ConsumerStage.run(try await RealBroker(), apple, in: TemporaryDirectory()) { stage in
      for (number, days) in [10, 40].enumerated() {
        let account = try ConsumerStage.account(Person(named: "ada"))
        let event = EventReference(
          id: try #require(EventID("event-\(number)")), account: account, hash: stage.store.hash(of: account),
          occurredAt: .now - .seconds(86_400 * days),
          origin: EventOrigin(topic: Topic.accountEvents.name, partition: 0, offset: Int64(number)),
          weight: EventWeight(severity: 0, tie: 0), yieldsTo: [])
        _ = try await stage.store.settle(
          [Settlement(of: event, by: .emailRelay, outcome: "state-kept", changes: [])],
          at: event.occurredAt)
      }
      let young = try await stage.siwa("store", "prune", "--older-than", "21d")
      #expect(young.end == .exit(2), "\(young)")
      #expect(
        young.errors.contains(
          "apple.account-events.v1 keeps records for 14d, in segments of 7d: expected 22d or more"), "\(young)")
      let rehearsal = try await stage.siwa("store", "prune", "--older-than", "22d", "--dry-run")
      #expect(rehearsal.end == .exit(0) && rehearsal.output.contains("\nSettled        1\n"), "\(rehearsal)")
      #expect(rehearsal.output.hasSuffix("\nNothing was deleted\n"))
      let done = try await stage.siwa("store", "prune", "--older-than", "22d")
      #expect(done.end == .exit(0) && done.output.contains("\nSettled        1\n"), "\(done)")
      let again = try await stage.siwa("store", "prune", "--older-than", "22d")
      #expect(again.end == .exit(0) && again.output.contains("\nSettled        0\n"), "\(again)")

      // A consumer of the operator's own whose topics are not there holds up nothing.
      let own = try await stage.siwa("store", "prune", "--older-than", "22d", "--consumer", "newsletter")
      #expect(own.end == .exit(0), "\(own)")
      let another = try await stage.siwa(
        "store", "prune", "--older-than", "22d", "--set", "kafka.bootstrap.servers=127.0.0.1:9")
      #expect(another.end == .exit(3), "\(another)")
    }
  }
}
