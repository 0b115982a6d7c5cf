import AccountEvents
import AccountStore
import EventLoop
import TestSupport
import Testing

/// `siwa erasures`, as an operator uses it.
@Loop @Suite(.timeLimit(.minutes(30))) struct ErasuresCommandTests {
  private let files = TemporaryDirectory()

  private func list(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await run(["list"] + words)
  }

  private func run(_ words: [String]) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let environment = ["SIWA_STORE_SQLITE": files.path + "/store.sqlite", "SIWA_STORE_MASTER_KEY": files.path + "/key"]
    return try await RunningProgram.run("siwa", ["erasures"] + words, environment) { program in
      try await program.outcome()
    }
  }

  @Test func saysWhatIsOpenAndByItsExitCodeWhetherAnythingIs() async throws {
    _ = files.write("key", try MasterKey.newText())
    let key = try MasterKey(file: files.path + "/key")
    let early = try await list()
    #expect(early.end == .exit(2) && early.errors.contains("`siwa store begin` makes it"), "\(early)")
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", key)
    let nothing = try await list()
    #expect(nothing.end == .exit(0) && nothing.output == "Nothing is open.\n", "\(nothing)")

    let store = try await SQLiteAccountStore.open(files.path + "/store.sqlite", key)
    let time = try #require(Timestamp(milliseconds: 1_800_000_000_000))
    let account = Account(team: try #require(TeamID("A1B2C3D4E5")), subject: try #require(AppleSubject("ada")))
    // More than are read at once.
    for number in 0..<501 {
      let event = EventReference(
        id: try #require(EventID("event-\(1000 + number)")), account: account, hash: store.hash(of: account),
        occurredAt: time,
        origin: EventOrigin(topic: "t", partition: 0, offset: 0), weight: EventWeight(severity: 1, tie: 0), yieldsTo: []
      )
      let step = ErasureStep(
        target: "shop", state: .failed, before: 3, affected: nil, after: nil, detail: "not-now", time: time)
      try await store.record(step, of: event)
    }
    let hash = store.hash(of: account)
    await store.close()
    let open = try await list()
    #expect(open.end == .exit(1), "\(open.errors)")
    let lines = open.output.split(separator: "\n")
    #expect(lines.count == 501)
    #expect(lines.last == "2027-01-15T08:00:00.000Z  event-1500  \(hash)  shop  failed  not-now  0")
    let json = try await list("--json")
    #expect(
      json.output.hasPrefix(
        #"{"since":"2027-01-15T08:00:00.000Z","event":"event-1000","account":"\#(hash)","target":"shop","#
          + #""state":"failed","cause":"not-now","attempts":0}"#), "\(json.output.prefix(300))")
  }

  /// A new store with these steps, all of one account, and the hash of that.
  private func makeStore(_ steps: [(event: String, step: ErasureStep)]) async throws -> AccountHash {
    _ = files.write("key", try MasterKey.newText())
    let key = try MasterKey(file: files.path + "/key")
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", key)
    let store = try await SQLiteAccountStore.open(files.path + "/store.sqlite", key)
    let account = Account(team: try #require(TeamID("A1B2C3D4E5")), subject: try #require(AppleSubject("ada")))
    for (event, step) in steps {
      try await store.record(
        step,
        of: EventReference(
          id: try #require(EventID(event)), account: account, hash: store.hash(of: account), occurredAt: step.time,
          origin: EventOrigin(topic: "t", partition: 0, offset: 0), weight: EventWeight(severity: 1, tie: 0),
          yieldsTo: []))
    }
    await store.close()
    return store.hash(of: account)
  }

  private func step(_ target: String, _ state: ErasureStep.State, _ detail: String) throws -> ErasureStep {
    ErasureStep(
      target: target, state: state, before: nil, affected: nil, after: nil, detail: detail,
      time: try #require(Timestamp(milliseconds: 1_800_000_000_000)))
  }

  @Test func aServiceAtWorkIsNoFault() async throws {
    let hash = try await makeStore([("event-1", try step("mails", .begun, ErasureStep.inProgress))])
    let open = try await list()
    #expect(open.end == .exit(0), "\(open)")
    #expect(open.output == "2027-01-15T08:00:00.000Z  event-1  \(hash)  mails  in-progress  -  0\n")
  }

  @Test func whatNobodyWillBringToItsEndIsDiscardedByAPerson() async throws {
    _ = try await makeStore([
      ("event-1", try step("shop", .failed, "unavailable")), ("event-1", try step("mails", .failed, "unavailable")),
    ])
    let words = ["discard", "event-1", "shop", "--by", "bob", "--reason", "its disks are shredded"]
    let nameless = try await run(Array(words.prefix(5)))
    #expect(nameless.end == .exit(2) && nameless.errors.contains("--reason"))
    // Whoever it is stays on a topic for ever: nobody is guessed.
    let guessed = try await run(["discard", "event-1", "shop", "--reason", "its disks are shredded"])
    #expect(guessed.end == .exit(2) && guessed.errors.contains("--by"), "\(guessed)")
    let discarded = try await run(words)
    #expect(discarded.end == .exit(0) && discarded.output == "discarded  event-1  shop\n", "\(discarded)")
    let again = try await run(words)
    #expect(again.end == .exit(1) && again.errors.contains("nothing is open or due"), "\(again)")
    let open = try await list()
    #expect(open.end == .exit(1) && open.output.contains("mails") && !open.output.contains("shop"))
  }

  @Test func saysWhatWasRetainedUntilTodayAndByItsExitCodeWhetherAnythingWas() async throws {
    let hash = try await makeStore([
      ("event-1", try step("invoices", .retained, "A1B2C3D4E5 § 147 AO, until 2020-12-31")),
      ("event-2", try step("invoices", .retained, "a law, until 2021-01-01")),
      ("event-3", try step("invoices", .retained, "A1B2C3D4E5 § 147 AO, until 9999-12-31")),
    ])
    let due = try await run(["due"])
    #expect(due.end == .exit(1), "\(due)")
    #expect(
      due.output == """
        2020-12-31  event-1  \(hash)  invoices  A1B2C3D4E5  § 147 AO  2027-01-15T08:00:00.000Z
        2021-01-01  event-2  \(hash)  invoices  -  a law  2027-01-15T08:00:00.000Z

        """)
    let json = try await run(["due", "--json", "--team", "A1B2C3D4E5", "--sub", "ada"])
    #expect(
      json.output.hasPrefix(#"{"until":"2020-12-31","event":"event-1","account":"\#(hash)","target":"invoices","#))
    let other = try await run(["due", "--team", "A1B2C3D4E5", "--sub", "bob"])
    #expect(other.end == .exit(0) && other.output == "Nothing is due.\n", "\(other)")
    for event in ["event-1", "event-2"] {
      let closed = try await run(["discard", event, "invoices", "--by", "bob", "--reason", "shredded"])
      #expect(closed.end == .exit(0), "\(closed)")
    }
    let nothing = try await run(["due"])
    #expect(nothing.end == .exit(0))
    let early = try await run(["discard", "event-3", "invoices", "--by", "bob", "--reason", "too early"])
    #expect(early.end == .exit(1))
  }
}
