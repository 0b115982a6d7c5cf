import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import ConsumerSupport
import EventLoop
import Foundation
import Kafka
import TestSupport
import Testing

/// Somebody who may write to the topic of events, and no more, before the built programs.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct VerifiedEventsTests {
  @Test func whoWritesToTheTopicErasesNobodyAndAppleAndTheOperatorDo() async throws {
    try await run { stage in
      let people = ["ada", "bob", "cyn"].map { Person(named: $0) }
      try stage.shop.welcome(people)
      let (ada, bob, cyn) = (people[0], people[1], people[2])
      let deletion = AccountEvent.sample("forged-1", .accountDelete, of: ada)
      let request = AccountEvent.sample("forged-2", .accountDeletionRequested, of: ada)
      let foreign = try await otherStore(in: stage.files)
      try await stage.send([
        KafkaRecord(of: deletion),
        try EventSigner(named: stage.signer.written.id).record(of: deletion),
        try stage.signer.record(of: deletion, holding: .sample("forged-1", .consentRevoked, of: ada)),
        KafkaRecord(of: request), .request(request, by: "bob", because: "a letter", foreign),
      ])
      await foreign.close()
      try await stage.send([try stage.record(of: .sample("genuine", .accountDelete, of: bob))])
      let erase = ["erase", "--team", AppleSide.team, "--by", "eve", "--reason", "a letter", "--yes", "--sub"]
      let asked = try await stage.siwa(erase + [cyn.subject])
      #expect(asked.end == .exit(0), "\(asked)")

      let consumers: [ConsumerName] = [.dataEraser, .tokenRevoker, .emailRelay]
      var members: [RunningMember] = []
      for consumer in consumers { members.append(try await stage.start(consumer)) }
      let progress = try GroupProgress(stage.broker.bootstrapServers)
      for (consumer, member) in zip(consumers, members) {
        try await until(every: .milliseconds(100)) { try await progress.isDone(consumer) }
        let letters = #"siwa_consumer_dead_letters_total{consumer="\#(consumer)",cause="unverified"}"#
        #expect(try await member.metric(letters) == 5)
        let list = try await stage.siwa("dead-letters", "list", "--consumer", consumer.text)
        #expect(list.output.split(separator: "\n").count { $0.contains("unverified") } == 5, "\(list)")
      }
      #expect(try stage.shop.customers() == [ada.subject])
      let outcomes = try await TopicContents.read([.outcomes], stage.broker.bootstrapServers).values.flatMap(\.self)
      let ids = Set(outcomes.compactMap { $0.text(of: "ce_id") })
      #expect(ids.count == 8 && !ids.contains { $0.hasPrefix("forged") }, "\(ids)")

      // Given to the eraser again they are as forged as before.
      let retry = try await stage.siwa("dead-letters", "retry", "--consumer", "data-eraser", "--all")
      #expect(retry.end == .exit(0), "\(retry)")
      try await until(every: .milliseconds(200)) {
        let list = try await stage.siwa("dead-letters", "list", "--consumer", "data-eraser")
        return list.output.split(separator: "\n").count == 5
      }
      #expect(try stage.shop.customers() == [ada.subject])

      // What is open of an event whose id they bear stays open, whoever is done with them: nobody can read one of them, and
      // with a clock that was ahead another one is not even verified.
      let ahead = AccountEvent(
        id: deletion.id, team: deletion.team, audience: deletion.audience, subject: deletion.subject,
        kind: .accountDeletionRequested, occurredAt: .now + .seconds(86_400), issuedAt: .now)
      let unreadable = KafkaRecord(of: deletion)
      try await stage.send([
        KafkaRecord(topic: unreadable.topic, key: unreadable.key, value: [0x78], headers: unreadable.headers),
        KafkaRecord(of: ahead),
      ])
      try await until(every: .milliseconds(200)) {
        let list = try await stage.siwa("dead-letters", "list", "--consumer", "data-eraser")
        return list.output.split(separator: "\n").count == 7
      }
      let crm = ErasureStep(
        target: "crm", state: .failed, before: nil, affected: nil, after: nil, detail: "not-now", time: .now)
      try await stage.store.record(crm, of: .of(deletion, stage.store, severity: 2))
      let discarded = try await stage.siwa(
        "dead-letters", "discard", "--consumer", "data-eraser", "--all", "--reason", "forged")
      #expect(discarded.end == .exit(0), "\(discarded)")
      #expect(
        discarded.errors.split(separator: "\n").count { $0.contains("whose erasure stays open") } == 5, "\(discarded)")
      #expect(try await stage.store.erasureSteps(of: deletion.id).map(\.state) == [.failed])
      for member in members { #expect(try await member.end() == .exit(0), "\(member.program.errors)") }
      await progress.close()
    }
  }

  @Test func anEventWaitsForItsKeyWhoeverIsKilledMeanwhile() async throws {
    var form = ConsumerStage.Form()
    form.hasKey = false
    form.session = .seconds(6)
    try await run(form) { stage in
      let people = ["ada", "bob"].map { Person(named: $0) }
      try stage.shop.welcome(people)
      try await stage.send([try stage.record(of: .sample("first", .accountDelete, of: people[0]))])
      func untilWaiting(for cause: String, _ member: RunningMember) async throws {
        try await until(every: .milliseconds(100)) {
          try await member.get("/metrics").text.contains(
            #"siwa_consumer_retrying{consumer="data-eraser",cause="\#(cause)"} 1"#)
        }
      }
      // Nobody's key is on the topic.
      var eraser = try await stage.start(.dataEraser)
      try await untilWaiting(for: "signing-keys-missing", eraser)
      #expect(try stage.shop.customers().count == 2)
      try await stage.send([stage.signer.keyRecord])
      try await until(every: .milliseconds(100)) { try stage.shop.customers() == [people[1].subject] }

      // Apple has replaced its key.
      let next = try EventSigner()
      try await stage.send([try next.record(of: .sample("second", .accountDelete, of: people[1]))])
      try await untilWaiting(for: "signing-key-unknown", eraser)
      await eraser.program.kill()
      try await stage.send([next.keyRecord])
      eraser = try await stage.start(.dataEraser)
      try await until(every: .milliseconds(100)) { try stage.shop.customers().isEmpty }
      #expect(try await stage.siwa("dead-letters", "list", "--consumer", "data-eraser").output == "None waits.\n")
      #expect(try await eraser.end() == .exit(0))
    }
  }

  private func otherStore(in files: TemporaryDirectory) async throws -> any AccountStore {
    let key = try #require(MasterKey([UInt8](repeating: 9, count: 32)))
    try await SQLiteAccountStore.begin(files.path + "/other.sqlite", key)
    return try await SQLiteAccountStore.open(files.path + "/other.sqlite", key)
  }

  private func run(
    _ form: ConsumerStage.Form = ConsumerStage.Form(), _ body: @Loop (ConsumerStage) async throws -> Void
  ) async throws {
    try await ConsumerStage.run(form) { stage, _ in
      try await body(stage)
    }
  }
}
