import AccountEvents
import AccountStore
import EventLoop
import TestSupport
import Testing

/// `siwa erasures`, as an operator uses it.
@Loop @Suite(.timeLimit(.minutes(3))) struct ErasuresCommandTests {
  private let files = TemporaryDirectory()

  private func list(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let environment = ["SIWA_STORE_SQLITE": files.path + "/store.sqlite", "SIWA_STORE_MASTER_KEY": files.path + "/key"]
    return try await RunningProgram.run("siwa", ["erasures", "list"] + words, environment) { program in
      let end = try await program.untilEnd()
      return (end, program.output, program.errors)
    }
  }

  @Test func saysWhatIsOpenAndByItsExitCodeWhetherAnythingIs() async throws {
    _ = files.write("key", try MasterKey.newText())
    let key = try MasterKey(file: files.path + "/key")
    let early = try await list()
    #expect(early.end == .exit(2) && early.errors.contains("`siwa store migrate` makes it"), "\(early)")
    _ = try await SQLiteAccountStore.migrate(files.path + "/store.sqlite", key)
    let nothing = try await list()
    #expect(nothing.end == .exit(0) && nothing.output == "Nothing is open.\n", "\(nothing)")

    let store = try await SQLiteAccountStore.open(files.path + "/store.sqlite", key)
    let time = try #require(Timestamp(milliseconds: 1_800_000_000_000))
    let account = Account(team: try #require(TeamID("A1B2C3D4E5")), subject: try #require(AppleSubject("ada")))
    // More than are read at once.
    for number in 0..<501 {
      let event = EventReference(
        id: try #require(EventID("event-\(1000 + number)")), account: account, occurredAt: time,
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
}
