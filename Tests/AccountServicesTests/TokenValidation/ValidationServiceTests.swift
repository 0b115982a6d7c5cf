import AccountEvents
import AccountStore
import ConsumerSupport
import EventLoop
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleID

/// What the validation asks Apple, how often, and what follows.
@Loop @Suite(.timeLimit(.minutes(30))) struct ValidationServiceTests {
  /// More tokens than a test's database has, kept in memory: those first that were given out longest ago.
  @Loop
  private final class Population {
    private var claimed: [Timestamp?]
    private var next = 0
    private(set) var mostAtOnce = 0

    init(_ count: Int) { claimed = Array(repeating: nil, count: count) }

    func claim(_ count: Int, at time: Timestamp) -> ClaimedTokens {
      mostAtOnce = max(mostAtOnce, count)
      var tokens: [DueToken] = []
      while tokens.count < count {
        let last = claimed[next]
        if let last, time - last < TokenValidation.interval { break }
        guard let value = SecretToken("secret-of-\(next)") else { preconditionFailure("visible ASCII") }
        tokens.append(
          DueToken(
            account: ValidationRig.account(0), client: ValidationRig.app, value: value,
            issuedAt: VirtualClock.start - .seconds(9 * 86_400), claimedAt: time, claimedBefore: last))
        claimed[next] = time
        next = (next + 1) % claimed.count
      }
      return ClaimedTokens(tokens)
    }

    func census(at time: Timestamp) -> ValidationCensus {
      let due = claimed.count { $0.map { time - $0 >= TokenValidation.interval } ?? true }
      let oldest = claimed.compactMap(\.self).min().map { $0 + TokenValidation.interval }
      return ValidationCensus(tokens: claimed.count, due: due, dueSince: oldest.flatMap { $0 <= time ? $0 : nil })
    }
  }

  @Test func aHundredThousandTokensAreValidatedAtTheAgreedRateInFlatMemory() async throws {
    let random = Mutex(SeededRandom(seed: 5))
    let lateness: @Sendable () -> Duration = {
      random.withLock { .microseconds(Int.random(in: 0...3000, using: &$0)) }
    }
    try await ValidationRig.run(lateness: lateness) { rig in
      let population = Population(100_000)
      rig.store.claiming = { population.claim($0, at: $1) }
      rig.store.recording = { $0.map { _ in .noted } }
      let validation = rig.validation(rate: 500)
      var mostHeld = 0
      rig.afterAnswer = { mostHeld = max(mostHeld, validation.held) }
      let ending = try await rig.validate(validation)
      #expect(ending.isNothingDue && validation.progress.good == 100_000)
      #expect(abs(rig.clock.passed / .seconds(200) - 1) < 0.02, "\(rig.clock.passed)")
      #expect(rig.counts.count == 100_000 && rig.counts.values.allSatisfy { $0 == 1 })
      let perSecond = Dictionary(grouping: rig.asked) { ($0.at - VirtualClock.start).components.seconds }
      #expect(perSecond.values.allSatisfy { $0.count <= 550 })
      #expect(mostHeld <= 512 && population.mostAtOnce <= 128, "\(mostHeld)")
    }
  }

  @Test func theTokensOfADayAreSpreadOverIt() async throws {
    try await ValidationRig.run { rig in
      let population = Population(2000)
      rig.store.claiming = { population.claim($0, at: $1) }
      rig.store.recording = { $0.map { _ in .noted } }
      rig.store.counting = { population.census(at: $0) }
      let daily = rig.daily(rig.validation(), as: "a")
      rig.afterAnswer = {
        guard rig.clock.passed > .seconds(3 * 86_400) else { return }
        for gauge in [rig.metrics.due, rig.metrics.behind, rig.metrics.stopped] { gauge.set(7) }
        daily.end()
      }
      await daily.run()
      #expect(rig.times.count == 2000)
      for times in rig.times.values {
        #expect(zip(times, times.dropFirst()).allSatisfy { .seconds(86_400) ..< .seconds(26 * 3600) ~= $1 - $0 })
      }
      // A hundred in each of the first twenty hours, and of the days after.
      let hours = Dictionary(grouping: rig.asked) { ($0.at - VirtualClock.start).components.seconds / 3600 }
      #expect((0..<19).allSatisfy { 90...110 ~= hours[Int64($0)]?.count ?? 0 })
      #expect(hours.values.allSatisfy { $0.count <= 130 })
      for name in ["leads", "due", "behind_seconds", "stopped", "rate"] {
        #expect(rig.metric("siwa_accounts_validation_\(name)") == "0", "\(name) is another process's business now")
      }
      let lease = try await rig.store.lease(Lease.validation)
      #expect(lease == nil, "others go on at once")
    }
  }

  /// A store that is too slow to be counted is the one that falls behind.
  @Test func whatNobodyCanCountCountsAsLate() async throws {
    try await ValidationRig.run { rig in
      let daily = rig.daily(rig.validation(), as: "a")
      var told: [Double] = []
      rig.store.before = { call throws(AccountStoreError) in
        guard call == .validationCensus else { return }
        told += rig.metric("siwa_accounts_validation_behind_seconds").flatMap(Double.init).map { [$0] } ?? []
        if rig.clock.passed > .seconds(7 * 3600) { daily.end() }
        throw AccountStoreError(.unavailable, "canceling statement due to statement timeout")
      }
      await daily.run()
      #expect(told.first == 0 && told == told.sorted())
      let last = try #require(told.last)
      #expect(last > 6 * 3600)
    }
  }

  // MARK: Killed

  /// Apple has answered, and nobody has written it down.
  @Test func whoIsKilledBeforeTheCommitAsksAgainADayLaterAndNotBefore() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...2)
      rig.answer = { token, _ in token.hasPrefix("secret-of-1.") ? .invalid : ValidationRig.good }
      let (killed, end) = (rig.validation(), Signal())
      // The store answers nothing until then: whoever tries again and again has the clock run away.
      rig.store.gate = { call in
        guard call == .recordValidations else { return }
        await end.wait()
        end.fire()
      }
      rig.store.before = { call throws(AccountStoreError) in
        if call == .recordValidations { throw AccountStoreError(.unavailable, "killed") }
      }
      // What is in its memory is lost.
      rig.afterAnswer = {
        guard rig.asked.count == 2 else { return }
        killed.end()
        end.fire()
      }
      _ = try await rig.validate(killed)
      #expect(rig.asked.count == 2)
      rig.store.before = { _ in }
      rig.store.gate = { _ in }
      rig.afterAnswer = {}
      #expect(try await rig.store.outbox().waiting == 0)

      #expect(try await rig.validate(rig.validation()).isNothingDue)
      rig.clock.advance(by: .seconds(86_000))
      #expect(try await rig.validate(rig.validation()).isNothingDue)
      #expect(rig.asked.count == 2, "not twice in a day")
      rig.clock.advance(by: .seconds(1000))
      let last = rig.validation()
      #expect(try await rig.validate(last).isNothingDue)
      #expect(rig.counts.values.allSatisfy { $0 == 2 })
      #expect(last.progress.published == 1 && last.progress.good == 1)
      #expect(try await rig.store.outbox().waiting == 1)
    }
  }

  /// Whatever else the store is to write down it does, and the next ones are validated.
  @Test(arguments: [AccountStoreError.Code.damaged, .sealBroken, .failed])
  func aRowThatIsDamagedKeepsNothingElseBack(_ code: AccountStoreError.Code) async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...50)
      let damaged: Set = [ValidationRig.account(7), ValidationRig.account(31)]
      var written: [Account] = []
      rig.store.recording = { validations throws(AccountStoreError) in
        let accounts = validations.map(\.token.account)
        if accounts.contains(where: damaged.contains) { throw AccountStoreError(code, "a row is damaged") }
        written += accounts
        return validations.map { _ in .noted }
      }
      let validation = rig.validation()
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(written.count == 48 && Set(written).count == 48)
      #expect(validation.progress.good == 48 && validation.progress.doubtful == 2 && validation.progress.done == 50)
      #expect(rig.metric(#"siwa_accounts_validations_total{outcome="lost"}"#) == "2")
      #expect(rig.captured.lines.count { $0.contains("it is lost") } == 2)
      try await rig.signIn(51...51)
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.good == 49)
    }
  }

  /// A store that cannot be used for now loses nothing.
  @Test(arguments: [AccountStoreError.Code.unavailable, .full, .wrongMasterKey])
  func whatMayBeWrittenLaterIsNotLost(_ code: AccountStoreError.Code) async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...3)
      var failures = 0
      rig.store.before = { call throws(AccountStoreError) in
        guard call == .recordValidations, failures < 20 else { return }
        failures += 1
        throw AccountStoreError(code, "not now")
      }
      let validation = rig.validation()
      #expect(try await rig.validate(validation).isNothingDue)
      // Whose turn came too late while the store could not be used is due as before.
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.good == 3 && validation.progress.doubtful == 0)
      #expect(rig.counts.values.allSatisfy { $0 == 1 }, "none is asked about twice")
    }
  }

  /// The commit has happened, and its answer was lost.
  @Test func whatIsWrittenThoughNobodyKnowsIsNotWrittenTwice() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...1)
      rig.answer = { _, _ in .invalid }
      var isLost = false
      rig.store.after = { call throws(AccountStoreError) in
        guard call == .recordValidations, !isLost else { return }
        isLost = true
        throw AccountStoreError(.uncertain, "lost")
      }
      #expect(try await rig.validate(rig.validation()).isNothingDue)
      #expect(rig.store.counts[.recordValidations] == 2)
      #expect(try await rig.store.outbox().waiting == 1)
    }
  }

  @Test func whoEndsGivesBackWhatWasNotAskedAbout() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...10)
      let first = rig.validation(rate: 50)
      rig.afterAnswer = { if rig.asked.count == 3 { first.end() } }
      _ = try await rig.validate(first)
      let asked = rig.asked.count
      #expect(asked < 10 && first.progress.good == asked)
      rig.afterAnswer = {}
      #expect(try await rig.validate(rig.validation()).isNothingDue)
      #expect(rig.counts.count == 10 && rig.counts.values.allSatisfy { $0 == 1 })
    }
  }

  // MARK: Several hosts

  @Test func anotherHostTakesOverFromOneThatIsGone() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...6)
      #expect(try await rig.validate(rig.validation()).isNothingDue)
      let other = try await rig.openAgain()
      let (one, two) = (
        rig.daily(rig.validation(), as: "one"), rig.daily(rig.validation(other), other, as: "two")
      )
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask(executorPreference: Loop.executor) { await one.run() }
        try await until { try await other.lease(Lease.validation)?.holder == "one" }
        // It is as good as dead: it stands still before its next call.
        var isGone = true
        rig.store.gate = { _ in
          do { try await until { !isGone } } catch { return }
        }
        group.addTask(executorPreference: Loop.executor) { await two.run() }
        try await until { try await other.lease(Lease.validation)?.holder == "two" }
        // So late that all of it is made up for at once, and not spread over a day.
        rig.clock.advance(by: .seconds(30 * 3600))
        try await until { rig.counts.values.allSatisfy { $0 >= 2 } }
        isGone = false
        one.end()
        two.end()
        try await group.waitForAll()
      }
      await other.close()
      for times in rig.times.values {
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= .seconds(86_400) })
      }
    }
  }

  @Test func whoLosesTheLeaseMidwayAsksNothingMore() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...40)
      let other = try await rig.openAgain()
      var isTaken = false
      // Before it is given more, so that it is not renewed meanwhile.
      rig.store.gate = { call in
        guard call == .claimTokens, rig.asked.count >= 5, !isTaken else { return }
        do {
          let seen = try await other.lease(Lease.validation)
          isTaken = try await other.take(Lease(Lease.validation, of: "operator", at: rig.clock.wall), after: seen)
        } catch {
          Issue.record(error)
        }
      }
      let validation = rig.validation(rate: 20)
      #expect(try await rig.validate(validation).isLeaseLost)
      let asked = rig.asked.count
      #expect(asked < 40 && validation.progress.good == asked, "what Apple has said is written all the same")
      await other.close()
      #expect(try await rig.validate(rig.validation()).isNothingDue)
      #expect(rig.counts.count == 40 && rig.counts.values.allSatisfy { $0 == 1 })
    }
  }

  // MARK: Apple

  @Test func whileAppleThrottlesItIsAskedLessAndNoTokenIsPassedOver() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...60)
      let end = VirtualClock.start + .seconds(120)
      rig.answer = { _, _ throws(AppleTokenError) in
        if rig.clock.wall < end { throw AppleTokenError(.throttled, "status 429", retryAfter: .seconds(30)) }
        return ValidationRig.good
      }
      let validation = rig.validation(rate: 20)
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.good == 60)
      #expect(rig.asked.count { $0.at < end } <= 40)
      #expect(try await rig.store.outbox().waiting == 0)
      #expect(rig.captured.lines.contains { $0.contains("asked more slowly") })
    }
  }

  @Test(
    arguments: [
      .interrupted, .deadline, .unavailable, .malformedAnswer, .unexpectedStatus, .cancelled, .invalidRequest,
      .unsupportedGrantType, .invalidScope, .unknownError,
    ] as [AppleTokenError.Code])
  func whatAppleLeavesInDoubtChangesNothing(_ code: AppleTokenError.Code) async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...3)
      rig.answer = { _, _ throws(AppleTokenError) in throw AppleTokenError(code, "as the test wants") }
      let validation = rig.validation()
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.doubtful == 3 && rig.asked.count == 3)
      for number in 1...3 { #expect(try await rig.store.tokens(of: ValidationRig.account(number)).count == 1) }
      #expect(try await rig.store.outbox().waiting == 0)
      // A day later they are asked about anew.
      rig.answer = { _, _ in ValidationRig.good }
      rig.clock.advance(by: .seconds(90_000))
      _ = try await rig.validate(validation)
      #expect(validation.progress.good == 3)
    }
  }

  @Test(arguments: [AppleTokenError.Code.invalidClient, .unauthorizedClient, .noKey, .unsigned])
  func anAppThatAppleDoesNotAcceptIsLeftAloneAndTheOthersAreNot(_ code: AppleTokenError.Code) async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...20, to: ValidationRig.web)
      try await rig.signIn(1...20, ago: .seconds(90_000))
      rig.answer = { _, client throws(AppleTokenError) in
        if client == ValidationRig.web { throw AppleTokenError(code, "as the test wants") }
        return ValidationRig.good
      }
      let validation = rig.validation(rate: 4)
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.good == 20 && validation.stopped == [ValidationRig.web])
      #expect(rig.asked.count < 25)
      #expect(rig.captured.lines.count { $0.contains("until an operator has put it right") } == 1)
      #expect(try await rig.store.outbox().waiting == 0)
      // Once that is done, they are due as before.
      rig.answer = { _, _ in ValidationRig.good }
      rig.clock.advance(by: .seconds(901))
      _ = try await rig.validate(validation)
      #expect(validation.progress.good == 40 && validation.stopped.isEmpty)
    }
  }

  @Test func whereAppleTakesNoTokenOfAnAppNothingIsConcludedHoweverOftenItIsAsked() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...350)
      rig.answer = { _, _ in .invalid }
      var inDoubt = 0
      for _ in 1...8 {
        // As each run of the command is, and each process that takes over.
        let validation = rig.validation(rate: 500)
        #expect(try await rig.validate(validation).isNothingDue)
        #expect(validation.progress.published == 0 && validation.progress.invalid == 0)
        inDoubt += validation.progress.doubtful
        rig.clock.advance(by: .seconds(901))
      }
      #expect(inDoubt == 350 && rig.counts.count == 350)
      #expect(rig.captured.lines.contains { $0.contains("Nothing more is concluded") })
      #expect(try await rig.store.outbox().waiting == 0)
      #expect(try await rig.store.refreshTokens(of: ValidationRig.app, upTo: 1000) == 350, "none is noted as invalid")
      // An operator who knows better says so.
      rig.clock.advance(by: .seconds(90_000))
      let believing = rig.validation(rate: 500, believesAll: true)
      #expect(try await rig.validate(believing).isNothingDue)
      #expect(believing.progress.published == 350)
      #expect(try await rig.store.outbox().waiting == 350)
    }
  }

  @Test func ofAnAppThatAppleKnowsWhatWasWithheldIsConcludedOnceItTakesAToken() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...50, ago: .seconds(3 * 86_400))
      try await rig.signIn(51...149)
      try await rig.signIn(150...160, ago: .seconds(90_000))
      let invalid = Set([1...50, 150...160].joined().map { "secret-of-\($0).\(ValidationRig.app)" })
      var isProven = false
      rig.answer = { token, _ in
        if invalid.contains(token) { return .invalid }
        isProven = true
        return ValidationRig.good
      }
      rig.store.recording = { validations in
        validations.map { validation -> RecordedValidation in
          guard case .invalid = validation.finding else { return .noted }
          #expect(isProven)
          return .published
        }
      }
      let validation = rig.validation(rate: 500)
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.published == 61 && validation.progress.doubtful == 0)
      #expect(validation.progress.good == 99 && validation.stopped.isEmpty)
    }
  }

  /// Only some of them are due.
  @Test func ofALargeAppNothingIsConcludedFromAFewAloneAndOfASmallOneItIs() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...20)
      try await rig.signIn(21...101, ago: .seconds(3600))
      try await rig.signIn(1...100, to: ValidationRig.web)
      rig.answer = { _, _ in .invalid }
      let validation = rig.validation(rate: 500)
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.published == 100 && validation.progress.doubtful == 20)
      #expect(validation.stopped.isEmpty)
      #expect(rig.captured.lines.count { $0.contains("nothing is concluded") } == 1)
      #expect(try await rig.store.refreshTokens(of: ValidationRig.app, upTo: 1000) == 101)
      #expect(try await rig.store.refreshTokens(of: ValidationRig.web, upTo: 1000) == 0)
    }
  }

  /// Another process may have been told otherwise since.
  @Test func whatWasWithheldForADayIsNotConcludedAnyMore() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...20)
      try await rig.signIn(21...101, ago: .seconds(3600))
      rig.answer = { _, _ in .invalid }
      let validation = rig.validation(rate: 500)
      #expect(try await rig.shift(validation).isNothingDue)
      try await until { rig.asked.count == 20 }
      rig.clock.advance(by: .seconds(90_000))
      rig.answer = { _, _ in ValidationRig.good }
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.invalid == 0 && validation.progress.good == 101)
      #expect(validation.progress.doubtful == 20)
      #expect(try await rig.store.outbox().waiting == 0)
    }
  }

  @Test func anOperatorDoesNotWaitForAnAppleThatIsNotThere() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...3)
      rig.answer = { _, _ throws(AppleTokenError) in throw AppleTokenError(.unreachable, "no route") }
      #expect(try await rig.validate(rig.validation(patience: 6)).isAppleFails)
      #expect(rig.clock.passed < .seconds(120))
      rig.answer = { _, _ in ValidationRig.good }
      let validation = rig.validation()
      _ = try await rig.validate(validation)
      #expect(validation.progress.good == 3, "they are due as before")
    }
  }

  /// Between Apple's answer and the commit, as another process records it.
  @Test func whoSignsInAnewMeanwhileKeepsThatSignIn() async throws {
    try await ValidationRig.run { rig in
      try await rig.signIn(1...1)
      rig.answer = { _, _ in .invalid }
      rig.afterAnswer = {
        let token = NewToken(
          kind: .refresh, client: ValidationRig.app, value: try #require(SecretToken("secret-of-a-fresh-one")))
        _ = try await rig.store.recordSignIn(ValidationRig.account(1), at: rig.clock.wall, tokens: [token])
      }
      let validation = rig.validation()
      #expect(try await rig.validate(validation).isNothingDue)
      #expect(validation.progress.invalid == 1 && validation.progress.published == 0)
      #expect(try await rig.store.outbox().waiting == 0)
    }
  }
}
