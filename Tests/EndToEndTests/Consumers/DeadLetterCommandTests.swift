import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import Kafka
import TestSupport
import Testing

/// `siwa dead-letters` beside running consumers, on a real broker.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct DeadLetterCommandTests {
  @Test func whatNobodyCanReadWaitsForAPersonAndHoldsUpNobody() async throws {
    try await run { stage, send in
      let person = Person(named: "ada")
      let key = try ConsumerStage.account(person).key
      try await send(KafkaRecord(topic: Topic.accountEvents.name, key: key, value: Array("\u{1b}[2Jno event".utf8)))
      // The person's next event follows the one that is put aside.
      try await send(KafkaRecord(of: .sample("after", .emailDisabled(.sample(person), isPrivate: true), of: person)))
      let relay = try await stage.start(.emailRelay)
      try await until { try await relay.mayBeSent(to: person.subject, token: stage.token).status == 200 }
      #expect(
        try await relay.metric(#"siwa_consumer_dead_letters_total{consumer="email-relay",cause="malformed-json"}"#) == 1
      )

      let list = try await stage.siwa("dead-letters", "list", "--consumer", "email-relay")
      #expect(list.end == .exit(0) && list.errors == "")
      let words = list.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      #expect(words.count == 1 && words[0][0] == "0/0" && Array(words[0][3...4]) == ["malformed-json", "1"], "\(list)")
      #expect(words[0].last?.hasPrefix("apple.account-events.v1/") == true)
      #expect(!list.output.contains(person.subject), "a list names nobody")
      #expect(try await stage.siwa("dead-letters", "list", "--consumer", "data-eraser").output == "None waits.\n")

      let discreet = try await stage.siwa("dead-letters", "show", "--consumer", "email-relay", "--letter", "0/0")
      #expect(discreet.end == .exit(0) && discreet.output.contains("dead-letter-cause: malformed-json\n"))
      #expect(!discreet.output.contains(person.subject) && !discreet.output.contains("no event"))
      let show = try await stage.siwa(
        "dead-letters", "show", "--consumer", "email-relay", "--letter", "0/0", "--personal")
      #expect(
        show.end == .exit(0) && show.output.contains("dead-letter-key: \(String(decoding: key, as: UTF8.self))\n"))
      #expect(show.output.contains("[2Jno event") && !show.output.contains("\u{1b}"), "nothing commands the terminal")

      // Given to the consumer again, it is as unreadable as before.
      let retry = try await stage.siwa("dead-letters", "retry", "--consumer", "email-relay", "--letter", "0/0")
      #expect(retry.end == .exit(0) && retry.output.hasPrefix("retried  0/0 "), "\(retry)")
      #expect(retry.errors == "retried: 1 of 1\n")
      var letters: [[String: Any]] = []
      try await until(every: .milliseconds(200)) {
        let list = try await stage.siwa("dead-letters", "list", "--consumer", "email-relay", "--json")
        letters = try #require(try JSONSerialization.jsonObject(with: Data(list.output.utf8)) as? [[String: Any]])
        return !letters.isEmpty
      }
      let origin = try #require(letters.first?["origin"] as? String)
      #expect(letters.count == 1 && origin.hasPrefix("apple.account-events.email-relay.retry.v1/"), "\(letters)")
      let place = try #require(letters.first?["letter"] as? String)

      let silent = try await stage.siwa("dead-letters", "discard", "--consumer", "email-relay", "--letter", place)
      #expect(silent.end == .exit(2) && silent.errors.contains("--reason"))
      let discard = try await stage.siwa(
        "dead-letters", "discard", "--consumer", "email-relay", "--letter", place, "--reason", "a rehearsal", "--by",
        "grace")
      #expect(discard.end == .exit(0) && discard.output.hasPrefix("discarded  \(place) "), "\(discard)")
      #expect(try await stage.siwa("dead-letters", "list", "--consumer", "email-relay").output == "None waits.\n")
      let again = try await stage.siwa("dead-letters", "retry", "--consumer", "email-relay", "--letter", place)
      #expect(again.end == .exit(1) && again.errors.contains("no letter waits at \(place)"))
      let notes = try await TopicContents.read([.deadLetters(of: .emailRelay)], stage.broker.bootstrapServers)
      let note = try #require(notes.values.first?.last)
      #expect(note.text(of: "handled-reason") == "a rehearsal" && note.text(of: "handled-by") == "grace")
      #expect(try await relay.end() == .exit(0))
    }
  }

  @Test func whatAnOperatorHasPutRightIsDoneWhenItIsRetried() async throws {
    try await run { stage, send in
      // By what Apple signed, nobody gets to the wrong team.
      stage.environment["SIWA_DATA_ERASER_VERIFY"] = "false"
      let person = Person(named: "bob")
      try stage.shop.welcome([person])
      // The eraser does not know this team, and erases nothing on a guess.
      for (number, id) in ["first", "second"].enumerated() {
        try await send(KafkaRecord(of: .sample(id, .accountDelete, of: person, team: "B1B2C3D4E5", at: number)))
      }
      let ignorant = try await stage.start(.dataEraser)
      let progress = try GroupProgress(stage.broker.bootstrapServers)
      try await until(every: .milliseconds(100)) { try await progress.isDone(.dataEraser) }
      #expect(try await ignorant.end() == .exit(0))
      #expect(try stage.shop.customers() == [person.subject])

      // The second letter of an account is not retried without the first.
      let second = try await stage.siwa("dead-letters", "retry", "--consumer", "data-eraser", "--letter", "0/1")
      #expect(second.end == .exit(1) && second.errors.contains("0/0 is of the same account and comes first"))
      stage.environment["SIWA_TEAMS_B1B2C3D4E5_ERASE_CONSENT_REVOKED"] = "shop"
      stage.environment["SIWA_TEAMS_B1B2C3D4E5_AUDIENCES"] = "com.example.other"
      let eraser = try await stage.start(.dataEraser)
      let retry = try await stage.siwa(
        "dead-letters", "retry", "--consumer", "data-eraser", "--all", "--cause", "no-policy")
      #expect(retry.end == .exit(0) && retry.output.split(separator: "\n").count == 2, "\(retry)")
      try await until(every: .milliseconds(100)) {
        let isRead = try await progress.ends(of: [.retries(of: .dataEraser)]).values.reduce(0, +) == 2
        let isDone = try await progress.isDone(.dataEraser)
        return isRead && isDone
      }
      #expect(try stage.shop.customers().isEmpty)
      #expect(try await stage.siwa("dead-letters", "list", "--consumer", "data-eraser").output == "None waits.\n")
      let outcomes = try await TopicContents.read([.outcomes], stage.broker.bootstrapServers)
      #expect(
        outcomes.values.first?.compactMap { $0.text(of: "ce_id") }
          == ["first", "second"].map { "\($0).account-erased" })
      #expect(try await eraser.end() == .exit(0))
      await progress.close()
    }
  }

  private func run(
    _ body: @Loop (ConsumerStage, @Loop (KafkaRecord) async throws -> Void) async throws -> Void
  ) async throws {
    // Nobody asks Apple here.
    let apple = AppleSide(
      origin: "https://127.0.0.1:9", certificate: "/nowhere", privateKey: "/nowhere",
      key: DeveloperKey(id: "ABC123DEFG", privateKeyPEM: try P256PrivateKey().pem()))
    try await ConsumerStage.run(try await RealBroker(), apple, in: TemporaryDirectory()) { stage in
      let producer = try Producer(
        try KafkaConfiguration(properties: [("bootstrap.servers", stage.broker.bootstrapServers)]),
        deadline: .seconds(300), log: { _ in })
      try await body(stage) { record in _ = try await producer.send(record) }
      await producer.close(within: .seconds(10))
    }
  }
}
