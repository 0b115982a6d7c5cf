import AccountEvents
import AccountServices
import AccountStore
import AuditSupport
import TestSupport
import Testing

/// Which obligations are met, by what a log says.
@Suite struct CompletenessTests {
  private static let all = AuditPeriod(from: nil, to: nil)
  private static let now = SampleHistory.moment(1_000_000)

  private func judge(
    _ history: SampleHistory, in period: AuditPeriod = all, within deadline: Duration = .seconds(100),
    without absent: ConsumerSet = []
  ) -> Completeness {
    var completeness = Completeness(of: ConcernedConsumers(without: absent), in: period, within: deadline)
    for (index, entry) in history.entries.enumerated() { completeness.take(entry, at: UInt64(index)) }
    return completeness
  }

  private func open(_ completeness: Completeness) -> [String] {
    completeness.openObligations.map { "\($0.index): \($0.missing.names.joined(separator: " "))" }
  }

  // MARK: Who is concerned

  @Test func everyTypeOfEventStandsInTheTableOnce() {
    let names = AccountEvent.Kind.each.map(\.name)
    #expect(ConcernedConsumers.table.flatMap(\.types).sorted() == names.sorted())
    let concerned = ConcernedConsumers(without: [])
    #expect(concerned.consumers(of: "email-enabled").names == ["email-relay"])
    #expect(concerned.consumers(of: "account-delete").names == ["token-revoker", "data-eraser", "email-relay"])
  }

  @Test func whatNobodyKnowsConcernsAll() {
    #expect(ConcernedConsumers(without: []).consumers(of: "account-frozen") == .everyone)
    #expect(ConcernedConsumers(without: .tokenRevoker).consumers(of: "x").names == ["data-eraser", "email-relay"])
  }

  // MARK: What meets an obligation

  @Test func anObligationIsMetOnceEachConsumerHasSaidSomething() {
    var history = SampleHistory()
    history.comes("a", at: 0)
    #expect(open(judge(history)) == ["0: token-revoker data-eraser email-relay"])
    history.does(.noToken, "a", by: .tokenRevoker, at: 1)
    history.does(.sessionsEnded, "a", by: .tokenRevoker, at: 1)
    #expect(open(judge(history)) == ["0: data-eraser email-relay"])
    history.does(.noEffect, "a", by: .dataEraser, at: 2, reason: .nothingToErase)
    #expect(open(judge(history)) == ["0: email-relay"])
    history.does(.relayChanged, "a", by: .emailRelay, at: 4)
    let completeness = judge(history)
    #expect(open(completeness) == [] && completeness.total.received == 1 && completeness.total.met == 1)
    #expect(completeness.total.times.maximum == 4000 && completeness.total.late == 0)
    #expect(completeness.keptCount == 0)
  }

  @Test(arguments: [AccountOutcome.Name.tokensRevoked, .revocationUnproven, .noToken, .noEffect])
  func whateverTheTokenRevokerSaysIsItsEffect(name: AccountOutcome.Name) {
    var history = SampleHistory()
    history.comes("a", .consentRevoked, at: 0)
    history.does(name, "a", .consentRevoked, by: .tokenRevoker, at: 1, reason: name == .noEffect ? .echo : nil)
    #expect(open(judge(history)) == ["0: data-eraser email-relay"])
  }

  @Test func aConsumerThatIsNotRunIsNotWaitedFor() {
    var history = SampleHistory()
    history.comes("a", at: 0)
    history.does(.accountErased, "a", by: .dataEraser, at: 1)
    #expect(open(judge(history, without: [.tokenRevoker, .emailRelay])) == [])
    history.comes("b", .mailOn, at: 2)
    let completeness = judge(history, without: [.tokenRevoker, .emailRelay])
    #expect(open(completeness) == [] && completeness.total.met == 2, "it concerns nobody who is run")
  }

  @Test func whatConsumersOfOnesOwnSayMeetsNothing() {
    var history = SampleHistory()
    history.comes("a", .mailOn, at: 0)
    history.does(.relayChanged, "a", .mailOn, by: "newsletter", at: 1)
    let completeness = judge(history)
    #expect(open(completeness) == ["0: email-relay"] && completeness.keptCount == 1)
  }

  @Test func effectsMayBeLoggedBeforeTheirObligation() {
    var history = SampleHistory()
    history.isDone("a", at: 10)
    history.comes("a", at: 5)
    let completeness = judge(history)
    #expect(open(completeness) == [] && completeness.total.times.maximum == 7000 && completeness.keptCount == 0)
    history = SampleHistory()
    history.does(.accountErased, "b", by: .dataEraser, at: 10)
    history.comes("b", at: 5)
    #expect(open(judge(history)) == ["1: token-revoker email-relay"])
  }

  @Test func furtherEffectsOfAnEventAreNotKept() {
    var history = SampleHistory()
    history.comes("a", at: 0)
    history.isDone("a", at: 1)
    history.does(.tokensRevoked, "a", by: .tokenRevoker, at: 900)
    let completeness = judge(history)
    #expect(completeness.keptCount == 0 && completeness.total.times.maximum == 3000 && completeness.total.late == 0)
  }

  @Test func aDeadLetterThatWasDiscardedWaitsForNobody() {
    for isEarly in [false, true] {
      var history = SampleHistory()
      if !isEarly { history.comes("a", at: 0) }
      history.decides(.retried, "a", of: .dataEraser, at: 40, by: "bob", because: nil)
      history.decides(.discarded, "a", of: .dataEraser, at: 50, by: "bob", because: "the shop is closed")
      if isEarly { history.comes("a", at: 0) }
      #expect(open(judge(history)) == ["\(isEarly ? 2 : 0): token-revoker email-relay"])
      history.does(.noToken, "a", by: .tokenRevoker, at: 1)
      history.does(.relayChanged, "a", by: .emailRelay, at: 1)
      #expect(judge(history).total.times.maximum == 50_000)
    }
  }

  @Test func aDecisionInQuarantineMeetsNothing() {
    var history = SampleHistory()
    history.comes("a", at: 0)
    history.decides(.discarded, "a", of: nil, at: 50, by: "bob", because: nil)
    #expect(open(judge(history)) == ["0: token-revoker data-eraser email-relay"])
  }

  // MARK: Whose it is

  @Test func whereSeveralAccountsHaveAnEventOfOneIdTheAccountDecides() {
    var history = SampleHistory()
    history.comes("a", .mailOn, at: 0, account: 1)
    history.comes("a", .mailOn, at: 1, account: 2)
    history.does(.relayChanged, "a", .mailOn, by: .emailRelay, at: 2, account: 2)
    #expect(open(judge(history)) == ["0: email-relay"])
    history.does(.relayChanged, "a", .mailOn, by: .emailRelay, at: 3, account: 3)
    #expect(open(judge(history)) == ["0: email-relay"], "the third is nobody's whose obligation is known")
    history.does(.relayChanged, "a", .mailOn, by: .emailRelay, at: 3, account: 1)
    #expect(open(judge(history)) == [])
  }

  @Test func earlyEffectsOfNamesakesFindTheirOwn() {
    var history = SampleHistory()
    history.does(.relayChanged, "a", .mailOn, by: .emailRelay, at: 2, account: 2)
    history.does(.relayChanged, "a", .mailOn, by: .emailRelay, at: 2, account: 1)
    history.comes("a", .mailOn, at: 0, account: 1)
    #expect(judge(history).keptCount == 1)
    history.comes("a", .mailOn, at: 0, account: 2)
    history.comes("a", .mailOn, at: 0, account: 3)
    #expect(open(judge(history)) == ["4: email-relay"])
  }

  /// The key that accounts are hashed with may have been rotated between the two.
  @Test func anIdThatIsOneAccountsIsEnough() {
    for isEarly in [false, true] {
      var history = SampleHistory()
      if !isEarly { history.comes("a", .mailOn, at: 0, account: 1) }
      history.does(.relayChanged, "a", .mailOn, by: .emailRelay, at: 2, account: 9)
      if isEarly { history.comes("a", .mailOn, at: 0, account: 1) }
      #expect(open(judge(history)) == [])
    }
  }

  // MARK: Periods and deadlines

  @Test func onlyWhatCameInThePeriodIsSaid() {
    var history = SampleHistory()
    for (id, time) in [("a", 0), ("b", 10), ("c", 20), ("d", 30)] as [(String, Double)] {
      history.comes(id, .mailOn, at: time)
    }
    for id in ["b", "d"] { history.does(.relayChanged, id, .mailOn, by: .emailRelay, at: 500) }
    let period = AuditPeriod(from: SampleHistory.moment(10), to: SampleHistory.moment(30))
    let completeness = judge(history, in: period)
    #expect(completeness.total.received == 2 && completeness.total.met == 1 && open(completeness) == ["2: email-relay"])
    #expect(completeness.total.late == 1 && completeness.total.times.maximum == 490_000)
    #expect(completeness.figures.map(\.type) == ["email-enabled"])
  }

  @Test func whatIsOpenForLongerThanTheDeadlineIsOverdue() throws {
    var history = SampleHistory()
    history.comes("a", .mailOn, at: 0)
    let completeness = judge(history)
    let open = try #require(completeness.openObligations.first)
    #expect(!completeness.isOverdue(open, at: SampleHistory.moment(100)))
    #expect(completeness.isOverdue(open, at: SampleHistory.moment(100.001)))
    #expect(completeness.type(of: open) == "email-enabled")
  }

  // MARK: Memory

  /// Pairs that fit are dropped, in whatever order they come: what is kept does not grow with the log.
  @Test func whatIsMetIsNotKept() {
    var random = SeededRandom(seed: 5)
    var completeness = Completeness(of: ConcernedConsumers(without: []), in: Self.all, within: .seconds(100))
    var most = 0
    for round in 0..<400 {
      var history = SampleHistory()
      for number in 0..<50 { history.comes("\(round)-\(number)", at: Double(round), account: UInt8(number)) }
      for number in 0..<50 { history.isDone("\(round)-\(number)", at: Double(round + 1), account: UInt8(number)) }
      for (index, entry) in history.entries.shuffled(using: &random).enumerated() {
        completeness.take(entry, at: UInt64(index))
        most = max(most, completeness.keptCount)
      }
    }
    #expect(completeness.total.met == 20_000 && completeness.openObligations.isEmpty)
    #expect(most <= 50 && completeness.keptCount == 0)
  }
}
