import AccountEvents
import JSON
import TestSupport
import Testing

/// What is written straight into bytes is what JSON's own writer makes of the same members.
@Suite struct DirectWritingTests {
  @Test(arguments: 0..<200 as Range<UInt64>)
  func anOutcomeIsWrittenAsTheGeneralWriterWritesIt(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let targets = (0..<Int.random(in: 0...3, using: &random)).map { _ in
      AccountOutcome.Target(
        name: text(&random), state: text(&random), before: number(&random), affected: number(&random),
        after: number(&random), note: Bool.random(using: &random) ? text(&random) : nil)
    }
    let cause = AccountOutcome.Cause(id: try id(&random), type: text(&random), occurredAt: try time(&random))
    let outcome = AccountOutcome(
      account: try #require(AccountHash((0..<32).map { _ in .random(in: 0...255, using: &random) })),
      name: try #require(AccountOutcome.Name.allCases.randomElement(using: &random)),
      reason: Bool.random(using: &random) ? AccountOutcome.Reason.allCases.randomElement(using: &random) : nil,
      cause: cause, consumer: text(&random), doneAt: try time(&random), targets: targets)
    var members: [JSONValue.Member] = [
      .init("account", .string(outcome.account.description)), .init("outcome", .string(outcome.name.rawValue)),
    ]
    if let reason = outcome.reason { members.append(.init("reason", .string(reason.rawValue))) }
    members += [
      .init(
        "cause",
        [
          "id": .string(cause.id.text), "type": .string(cause.type),
          "event_time": .integer(cause.occurredAt.milliseconds),
        ]), .init("consumer", .string(outcome.consumer)), .init("done_at", .integer(outcome.doneAt.milliseconds)),
    ]
    if !targets.isEmpty { members.append(.init("targets", .array(targets.map(json)))) }
    let record = EventRecord(outcome)
    #expect(record.value == JSONValue.object(members).bytes)
    let whose = outcome.name == .noEffect ? ".\(outcome.consumer)" : ""
    #expect(header("ce_id", of: record) == "\(cause.id.text).\(outcome.name.rawValue)\(whose)")
    #expect(header("ce_source", of: record) == "urn:siwa:\(outcome.consumer)")
    #expect(header("ce_type", of: record) == "com.apple.siwa.\(outcome.name.rawValue).v1")
    #expect(header("ce_partitionkey", of: record) == outcome.account.description)
  }

  @Test(arguments: 0..<200 as Range<UInt64>)
  func aRelayStateIsWrittenAsTheGeneralWriterWritesIt(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let address = Bool.random(using: &random) ? RelayAddress("a\"\\@" + text(&random).filter { $0 > " " } + "ü") : nil
    let status = try #require(RelayState.Status.allCases.randomElement(using: &random))
    let relay = RelayRecord(
      account: Account(team: Examples.team, subject: Examples.subject),
      state: RelayState(
        status: status, address: address, isPrivate: .random(using: &random), since: try time(&random)),
      event: try id(&random))
    var members: [JSONValue.Member] = [
      .init("team", .string(relay.account.team.text)), .init("sub", .string(relay.account.subject.text)),
      .init("status", .string(status.rawValue)), .init("since", .integer(relay.state.since.milliseconds)),
    ]
    if let address {
      members.append(.init("email", .string(address.text)))
      members.append(.init("is_private_email", .boolean(relay.state.isPrivate)))
    }
    members.append(.init("event", .string(relay.event.text)))
    let record = EventRecord(relay)
    #expect(record.value == JSONValue.object(members).bytes)
    #expect(header("ce_id", of: record) == "\(relay.event.text).email-relay")
  }

  private func json(_ target: AccountOutcome.Target) -> JSONValue {
    var members: [JSONValue.Member] = [.init("name", .string(target.name)), .init("state", .string(target.state))]
    for (name, number) in [("before", target.before), ("affected", target.affected), ("after", target.after)] {
      if let number { members.append(.init(name, .integer(number))) }
    }
    if let note = target.note { members.append(.init("note", .string(note))) }
    return .object(members)
  }

  private func header(_ name: String, of record: EventRecord) -> String? {
    record.headers.first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
  }

  /// Up to 30 characters, some of which need an escape or several bytes.
  private func text(_ random: inout SeededRandom) -> String {
    String(
      (0..<Int.random(in: 0...30, using: &random)).map { _ in
        "ab-\"\\\u{0}\u{8}\t\n\u{c}\r\u{1f}\u{7f}é€😀/".randomElement(using: &random) ?? "a"
      })
  }

  private func number(_ random: inout SeededRandom) -> Int64? {
    Bool.random(using: &random) ? .random(in: 0..<1 << 53, using: &random) : nil
  }

  private func time(_ random: inout SeededRandom) throws -> Timestamp {
    try #require(Timestamp(milliseconds: .random(in: 0..<253_402_300_800_000, using: &random)))
  }

  private func id(_ random: inout SeededRandom) throws -> EventID {
    let count = Int.random(in: 1...128, using: &random)
    return try #require(EventID(String((0..<count).map { _ in "aZ0-_.!~/".randomElement(using: &random) ?? "a" })))
  }
}
