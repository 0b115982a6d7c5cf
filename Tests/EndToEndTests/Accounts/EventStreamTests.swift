import AccountEvents
import AppleSimulator
import EventLoop
import Glibc
import Kafka
import TestSupport
import Testing

/// The streams of events of the built `siwa-accounts`.
@Loop @Suite(.timeLimit(.minutes(30))) struct EventStreamTests {
  /// Runs `body` on a cluster in this process.
  private func run(_ body: @Loop (AccountsStage, EventsTopic, EmbeddedCluster) async throws -> Void) async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await AccountsStage.run(brokers: cluster.bootstrapServers) { stage in
      try await body(stage, EventsTopic(brokers: cluster.bootstrapServers), cluster)
    }
  }

  @Test(RealBroker.isThere) func aProgramThatIsKilledLosesAndRepeatsNothing() async throws {
    let broker = try await RealBroker.withTopics(RealBroker())
    try await AccountsStage.run(brokers: broker.bootstrapServers) { stage in
      let topic = EventsTopic(brokers: broker.bootstrapServers)
      let ids = (0..<40).map { "event-\($0)" }
      var told: [StreamBlock] = []
      var first: String?
      try await stage.accounts { running in
        let stream = try await EventReader(running, stage.tokens.shop)
        first = try await stream.next().id
        try await topic.publish(ids[..<10])
        for _ in 0..<10 { told.append(try await stream.event()) }
        try await topic.publish(ids[10..<30])
        // Some of them are on their way when the program is killed.
        for _ in 0..<3 { told.append(try await stream.event()) }
        running.program.signal(SIGKILL)
        while let event = try await stream.eventIfAny() { told.append(event) }
      }
      #expect(first != nil && told.count >= 13)
      try await topic.publish(ids[30...])
      try await topic.publish(ids[..<1], .accountDelete, of: AccountsStage.otherTeam, AccountsStage.otherApp)
      try await stage.accounts { running in
        let resumed = try await EventReader(running, stage.tokens.shop, after: told.last?.id)
        while told.count < ids.count { told.append(try await resumed.event()) }
        #expect(Set(told.map(\.event)) == ["sessions-ended"])
        #expect(try Set(told.compactMap { try $0.data["id"] as? String }) == Set(ids))
        // Who was cut off before the first event can go on, too.
        let again = try await EventReader(running, stage.tokens.shop, after: first)
        var repeated: Set<String> = []
        for _ in ids { repeated.insert(try #require(try await again.event().data["id"] as? String)) }
        #expect(repeated == Set(ids))
        for person in ids { #expect(!running.program.errors.contains(Person(named: person).subject)) }
        // What the broker no longer has is a gap, and the stream goes on behind it.
        try await topic.forgetAll()
        let late = try await EventReader(running, stage.tokens.shop, after: first)
        #expect(try await late.event().event == "gap")
        #expect(try await running.administration.metric("siwa_accounts_event_gaps_total") == 1)
        // The broker is away for a moment, and no stream ends.
        broker.kill()
        try await broker.start()
        try await topic.publish(["afterwards"])
        for stream in [resumed, again, late] {
          #expect(try await stream.event().data["id"] as? String == "afterwards")
        }
        running.program.signal(SIGTERM)
        for stream in [resumed, again, late] {
          #expect(try await stream.isEndedInOrder())
          stage.note(stream: stream.said)
        }
        #expect(try await running.program.untilEnd() == .exit(0))
      }
      try await stage.checkAnswers()
    }
  }

  @Test func aCallerIsToldOfItsOwnAppsAlone() async throws {
    try await run { stage, topic, _ in
      try await stage.accounts { running in
        let shop = try await EventReader(running, stage.tokens.shop)
        let other = try await EventReader(running, stage.tokens.other)
        for stream in [shop, other] { #expect(try await stream.next().id == "1.0.0.0") }
        let address = try #require(RelayAddress(Person(named: "one").address))
        try await topic.publish(value: "not an event")
        try await topic.publish(["one"], .emailDisabled(address, isPrivate: true))
        try await topic.publish(["two"], .accountDelete)
        try await topic.publish(["four"], .accountTransferred)
        try await topic.publish(["three"], of: AccountsStage.otherTeam, AccountsStage.otherApp)
        var told: [String: StreamBlock] = [:]
        for _ in 0..<3 {
          let event = try await shop.event()
          told[event.event] = event
        }
        let (mail, end) = (try told["relay-changed"]?.data, try told["sessions-ended"]?.data)
        #expect(mail?["maySend"] as? Bool == false && mail?["status"] as? String == "disabled")
        #expect(mail?["sub"] as? String == Person(named: "one").subject)
        #expect(end?["cause"] as? String == "account-delete")
        #expect(end?["clientIds"] as? [String] == [AccountsStage.app, AccountsStage.web])
        #expect(try told["account-transferred"]?.data["id"] as? String == "four")
        let theirs = try await other.event()
        #expect(try theirs.data["id"] as? String == "three")
        #expect(try theirs.data["clientIds"] as? [String] == [AccountsStage.otherApp])
        // The account is the one that a sign-in names.
        let account = try #require(end?["account"] as? String)
        #expect(account.utf8.count == 43 && mail?["account"] as? String != account)
        #expect(!(shop.said + other.said).contains(address.text))
        for name in ["one", "two", "four"] { #expect(!other.said.contains(Person(named: name).subject)) }
        for person in ["one", "two", "three", "four"] {
          #expect(!running.program.errors.contains(Person(named: person).subject))
        }
        #expect(try await running.administration.metric("siwa_accounts_event_streams") == 2)
        stage.note(stream: shop.said)
        stage.note(stream: other.said)
        // All of it is told again to who asks for it.
        let all = try await EventReader(running, stage.tokens.shop, from: "beginning")
        var names: Set<String> = []
        for _ in 0..<3 { names.insert(try await all.event().event) }
        #expect(names == Set(told.keys))
        for stream in [shop, other, all] { stream.close() }
        try await until { try await running.administration.metric("siwa_accounts_event_streams") == 0 }
      }
      try await stage.checkAnswers()
    }
  }

  @Test func whoGetsNoStreamIsToldWhy() async throws {
    try await run { stage, topic, _ in
      try await topic.publish((0..<6).map { "event-\($0)" })
      let limits = ["SIWA_ACCOUNTS_LIMITS_STREAMS": "2", "SIWA_ACCOUNTS_LIMITS_CONNECTIONS": "6"]
      let (path, shop) = ("/v1/events", stage.tokens.shop)
      try await stage.accounts(limits) { running in
        for wrong in ["x", "1.", "1.-1", "1.00.0.0", "2.0.0.0", "1.0.0.0.", String(repeating: "1.", count: 5000)] {
          let refused = try await EventReader.answer(running, shop, after: wrong)
          #expect(refused.hasPrefix("HTTP/1.1 400 ") && refused.contains("urn:siwa:problem:malformed"), "\(refused)")
        }
        for query in ["?from=then", "?from=now&from=now", "?since=now", "?from="] {
          #expect(try await stage.ask(running, "GET", path, target: path + query, as: shop).status == 400)
        }
        #expect(try await stage.ask(running, "GET", path, as: nil).status == 401)
        #expect(try await stage.ask(running, "POST", path, isDocumented: false, as: shop).status == 405)
        let head = try await EventReader.answer(running, shop, method: "HEAD", after: "1.0.0.0")
        #expect(head.hasPrefix("HTTP/1.1 200 ") && head.hasSuffix("\r\n\r\n"), "\(head)")
        // Where the topic has never been, it is read from its beginning.
        let stream = try await EventReader(running, shop, after: "1.zzz.zzz.zzz.zzz")
        #expect(try await stream.event().event == "gap")
        for _ in 0..<6 { #expect(try await stream.event().event == "sessions-ended") }
        let second = try await EventReader(running, shop)
        _ = try await second.next()
        let beyond = try await stage.ask(running, "GET", path, as: shop)
        #expect(beyond.status == 429 && beyond.headers["Retry-After"] != nil, "\(beyond.text)")
        let third = try await EventReader(running, stage.tokens.other)
        _ = try await third.next()
        let full = try await stage.ask(running, "GET", path, as: stage.tokens.other)
        #expect(full.status == 503 && full.headers["Retry-After"] != nil, "\(full.text)")
        // Who hangs up makes room.
        second.close()
        try await until { try await running.administration.metric("siwa_accounts_event_streams") == 2 }
        let next = try await EventReader(running, shop)
        _ = try await next.next()
      }
      try await stage.checkAnswers()
    }
  }

  @Test func aStreamIsOpenWhileKafkaIsAway() async throws {
    try await run { stage, topic, cluster in
      try await topic.publish(["before"])
      cluster.setReachable(false)
      try await stage.accounts { running in
        // How far the topic is, nobody can say.
        let now = try await stage.ask(running, "GET", "/v1/events", as: stage.tokens.shop)
        #expect(now.status == 503 && now.headers["Retry-After"] != nil)
        let stream = try await EventReader(running, stage.tokens.shop, after: "1.0.0.0")
        #expect(try await stream.next().id == "1.0.0.0")
        #expect(try await running.administration.get("/readyz").status == 200)
        cluster.setReachable(true)
        #expect(try await stream.event().data["id"] as? String == "before")
        cluster.setReachable(false)
        cluster.setReachable(true)
        try await topic.publish(["after"])
        #expect(try await stream.event().data["id"] as? String == "after")
      }
      try await stage.checkAnswers()
    }
  }
}
