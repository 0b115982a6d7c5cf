import AccountEvents
import AccountStore
import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleID

/// What a run asks Apple, how often, and what it makes of the answers.
@Loop @Suite(.timeLimit(.minutes(30))) struct TransferRunTests {
  private static let throttled = AppleTokenError(.throttled, "too many", retryAfter: .seconds(30))
  private static let late = AppleTokenError(.deadline, "nothing came")

  // MARK: The rate

  @Test func aHundredThousandUsersAreAskedAboutAtTheAgreedRateInFlatMemory() async throws {
    let random = Mutex(SeededRandom(seed: 5))
    let rig = try TransferRig(lateness: {
      random.withLock { .microseconds(Int.random(in: 0...3000, using: &$0)) }
    })
    rig.fill(100_000)
    let run = try rig.run(rate: 500, concurrency: 64)
    var mostHeld = 0
    run.tell = { _ in mostHeld = max(mostHeld, run.held) }
    let ending = await run.run()
    #expect(ending.name == "complete" && run.progress.done == 100_000, "\(run.progress)")
    #expect(abs(rig.clock.passed / .seconds(200) - 1) < 0.02, "\(rig.clock.passed)")
    #expect(rig.counts.count == 100_000 && rig.counts.values.allSatisfy { $0 == 1 })
    #expect(mostHeld <= 128, "\(mostHeld)")
  }

  @Test func noMoreAreAskedAtOnceThanAgreed() async throws {
    let rig = try TransferRig()
    rig.fill(200)
    rig.answer = { user in
      for _ in 0..<200 { await Loop.nextTurn() }
      return TransferRig.good(user)
    }
    let ending = await (try rig.run(rate: 10_000, concurrency: 7)).run()
    #expect(ending.name == "complete" && rig.mostUnderWay == 7)
  }

  @Test func whatIsThrottledIsAskedMoreSlowlyAndInTheEndOfEverybody() async throws {
    let rig = try TransferRig()
    rig.fill(3000)
    var throttles = 0
    rig.answer = { user throws(AppleTokenError) in
      let second = (rig.clock.wall - VirtualClock.start).components.seconds
      if 5..<8 ~= second {
        throttles += 1
        throw Self.throttled
      }
      return TransferRig.good(user)
    }
    let run = try rig.run()
    var told: [String] = []
    run.tell = { progress in
      guard let rest = progress.rest else { return }
      let words = rest.words(at: rest.until + .seconds(-12))
      if told.last != words { told.append(words) }
    }
    #expect(await run.run().name == "complete")
    #expect(told == ["Apple answers throttled: nobody is asked for 12 s"])
    #expect(run.progress.done == 3000 && run.progress.left == 0 && throttles > 0)
    #expect(throttles <= 20, "for half a minute nobody is asked: \(throttles)")
    let after = rig.asked.filter { (31..<36).contains(($0.at - VirtualClock.start).components.seconds) }
    #expect(after.count <= 5 * 55, "half as fast: \(after.count)")
  }

  /// One user in a hundred is asked about too early, and has to wait for half a minute: nobody else does.
  @Test func oneThrottledQuestionAmongManyHoldsNobodyElseUp() async throws {
    let rig = try TransferRig()
    rig.fill(3000)
    var throttled: Set<Int64> = []
    rig.answer = { user throws(AppleTokenError) in
      if user.number % 100 == 50, throttled.insert(user.number).inserted { throw Self.throttled }
      return TransferRig.good(user)
    }
    let run = try rig.run()
    #expect(await run.run().name == "complete")
    #expect(run.progress.done == 3000 && run.progress.share == 1 && throttled.count == 30)
    #expect(run.progress.rest == nil, "somebody is asked all the time")
    #expect(
      rig.clock.passed < .seconds(65),
      "thirty seconds of questions, and half a minute for the last: \(rig.clock.passed)")
    for number in throttled {
      let times = rig.asked.filter { $0.number == number }.map(\.at)
      #expect(times.count == 2 && times[1] - times[0] >= .seconds(30), "as long as Apple asks")
    }
  }

  @Test func whomEverybodyElseHasGoneBeforeIsWaitedForAndThatIsTold() async throws {
    let rig = try TransferRig()
    rig.fill(10)
    var isThrottled = false
    rig.answer = { user throws(AppleTokenError) in
      if user.number == 10, !isThrottled {
        isThrottled = true
        throw Self.throttled
      }
      return TransferRig.good(user)
    }
    let run = try rig.run()
    #expect(await run.run().name == "complete")
    let rest = try #require(run.progress.rest)
    #expect(rest.code == .throttled && rest.until == rig.clock.time, "it ends with the question about them")
  }

  // MARK: One user's answer

  @Test func oneUsersRefusalIsRecordedAndStopsNothing() async throws {
    let rig = try TransferRig()
    rig.fill(300)
    rig.answer = { $0.number % 100 == 7 ? TransferRig.withdrawn : TransferRig.good($0) }
    let run = try rig.run()
    #expect(await run.run().name == "complete")
    #expect(rig.users(.refused) == [7, 107, 207])
    #expect(rig.users(.done).count == 297)
    #expect(run.progress.refused == 3 && rig.store.users[7]?.reason == .consentWithdrawn)
  }

  @Test func whatStaysInDoubtIsAskedAgainInTheSameRunAndThenLeft() async throws {
    let rig = try TransferRig()
    rig.fill(3000)
    var failures: [Int64: Int] = [20: 2, 150: 99]
    rig.answer = { user throws(AppleTokenError) in
      guard let left = failures[user.number], left > 0 else { return TransferRig.good(user) }
      failures[user.number] = left - 1
      throw Self.late
    }
    let run = try rig.run()
    #expect(await run.run().name == "complete")
    #expect(rig.counts[20] == 3)
    #expect(rig.counts[150] == TransferRun.attempts)
    #expect(run.progress.left == 1)
    #expect(rig.users(.waiting) == [150])
    #expect(run.progress.share == 1, "one of many says nothing of Apple")
    failures = [:]
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.users(.done).count == 3000)
  }

  @Test func whereAppleFailsItEndsAndNobodyIsLost() async throws {
    let rig = try TransferRig()
    rig.fill(5000)
    var isBroken = false
    rig.answer = { user throws(AppleTokenError) in
      if user.number == 2000 { isBroken = true }
      if isBroken { throw AppleTokenError(.unavailable, "503") }
      return TransferRig.good(user)
    }
    let run = try rig.run()
    #expect(await run.run().name == "appleFails")
    #expect(rig.users(.done).count + rig.users(.waiting).count == 5000)
    #expect(rig.users(.refused) == [])
    isBroken = false
    rig.answer = { TransferRig.good($0) }
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.users(.done).count == 5000)
  }

  // MARK: What an operator has to put right

  @Test(arguments: [
    AppleTokenError.Code.noKey, .unsigned, .certificate, .invalidClient, .unauthorizedClient, .invalidScope,
  ])
  func anOperatorsFaultStopsItAtOnce(code: AppleTokenError.Code) async throws {
    let rig = try TransferRig()
    rig.fill(1000)
    rig.answer = { user throws(AppleTokenError) in
      if user.number >= 50 { throw AppleTokenError(code, "not right") }
      return TransferRig.good(user)
    }
    let ending = await (try rig.run()).run()
    guard case .misconfigured(let error, let team) = ending else { return #expect(Bool(false), "\(ending)") }
    #expect(error.code == code && team == TransferRig.ours && rig.asked.count <= 50 + 16)
    #expect(rig.users(.done).count == 49 && rig.users(.waiting).count == 951)
  }

  /// The transfer is called off in the middle: Apple says nothing of anybody any more.
  @Test func aHundredRefusalsInARowAreNotTheUsersWhereAppleRefusesEverybody() async throws {
    let rig = try TransferRig()
    rig.fill(1000)
    var isOver = false
    rig.answer = { user in
      if user.number > 300 { isOver = true }
      return isOver ? TransferRig.withdrawn : TransferRig.good(user)
    }
    let ending = await (try rig.run()).run()
    #expect(ending.name == "allRefused" && rig.users(.done).count == 300)
    #expect(rig.users(.refused) == [], "nothing is concluded")
    #expect(rig.asked.count < 300 + TransferRun.mostRefusedInARow + 17 + TransferRun.mostControls)
    #expect(await (try rig.run(beliefs: .conflicts)).run().name == "allRefused", "that is another guard")
    #expect(rig.users(.refused) == [])
    #expect(await (try rig.run(beliefs: .refusals)).run().name == "complete")
    #expect(rig.users(.refused).count == 700)
  }

  /// Ninety-nine at the end of a plan may well have withdrawn consent.
  @Test func fewerRefusalsAtTheEndAreTheUsers() async throws {
    let rig = try TransferRig()
    rig.fill(199)
    rig.answer = { $0.number > 100 ? TransferRig.withdrawn : TransferRig.good($0) }
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.users(.refused).count == 99)
    #expect(rig.users(.waiting) == [])
    #expect(rig.asked.count == 200 && rig.counts[1] == 2, "somebody of before was asked about once more")
  }

  /// The key is taken away, or the transfer is called off, when forty are done: of those nothing is said any more either.
  @Test func refusalsAtTheEndAreNotTheUsersWhereAppleSaysNothingOfAnybody() async throws {
    let rig = try TransferRig()
    rig.fill(100)
    var isOver = false
    rig.answer = { user in
      if user.number > 40 { isOver = true }
      return isOver ? TransferRig.withdrawn : TransferRig.good(user)
    }
    #expect(await (try rig.run()).run().name == "allRefused")
    #expect(rig.users(.done).count == 40 && rig.users(.waiting).count == 60, "nothing is concluded")
    #expect(rig.asked.count == 100 + TransferRun.mostControls)
    rig.answer = { TransferRig.good($0) }
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.users(.done).count == 100)
  }

  @Test func whereNobodyWasEverAnsweredRefusalsAreNotWrittenDown() async throws {
    let rig = try TransferRig()
    rig.fill(30)
    rig.answer = { _ in TransferRig.withdrawn }
    #expect(await (try rig.run()).run().name == "allRefused")
    #expect(rig.users(.waiting).count == 30)
    #expect(await (try rig.run(beliefs: .refusals)).run().name == "complete")
    #expect(rig.users(.refused).count == 30)
  }

  @Test func whoWasRefusedIsAskedAboutAgainAndNobodyElse() async throws {
    let rig = try TransferRig()
    rig.fill(300)
    rig.answer = { $0.number % 2 == 0 ? TransferRig.withdrawn : TransferRig.good($0) }
    #expect(await (try rig.run()).run().name == "complete")
    let before = rig.asked.count
    rig.answer = { $0.number == 108 ? TransferRig.good($0) : TransferRig.withdrawn }
    // More than a hundred of them are in a row: they were before.
    let again = try rig.run(question: .refusedAgain)
    #expect(await again.run().name == "complete")
    #expect(rig.asked.dropFirst(before).map(\.number) == Array(stride(from: 2, through: 300, by: 2)))
    #expect(again.progress.done == 1 && again.progress.refused == 149)
    #expect(rig.users(.done).count == 151 && rig.users(.refused).count == 149 && rig.store.users[108]?.reason == nil)
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.asked.count == before + 150, "without the word nobody of them is asked about")
  }

  @Test func identifiersThatAreOfNoUseStopIt() async throws {
    let useless: [@Loop (TransferUser) -> TransferResult.Answer] = [
      // The same for everybody, the subject itself, and the subject in another wrapping.
      { _ in .identifier(TransferRig.identifier("001876.r0")) },
      { .identifier(TransferRig.identifier($0.subject?.text ?? "")) },
      { .identifier(TransferRig.identifier("760417.old\($0.number).1827")) },
    ]
    for answer in useless {
      let rig = try TransferRig()
      rig.fill(1000)
      rig.answer = answer
      let run = try rig.run()
      #expect(await run.run().name == "useless")
      #expect(rig.asked.count <= TransferRun.mostUselessInARow + 17)
      #expect(rig.users(.waiting).count >= 999)
    }
  }

  @Test func accountsThatTwoIdentifiersComeToStopIt() async throws {
    let rig = try TransferRig(.receiving)
    rig.fill(1000)
    rig.answer = { _ in .account(TransferRig.subject("000002.one.0002"), address: nil, isPrivate: false) }
    for beliefs in [[], .refusals] as [TransferRun.Beliefs] {
      #expect(await (try rig.run(beliefs: beliefs)).run().name == "allConflicts")
    }
    #expect(rig.users(.waiting).count > 900 && rig.users(.done).count == 1)
    #expect(await (try rig.run(beliefs: .conflicts)).run().name == "complete")
    #expect(rig.users(.conflict).count == 999)
  }

  /// In a million there are more than five.
  @Test func fewOfNoUseAndFewConflictsAmongManyStopNothing() async throws {
    let sending = try TransferRig()
    sending.fill(1000)
    sending.answer = { user in
      user.number % 50 == 0 ? .identifier(TransferRig.identifier(user.subject?.text ?? "")) : TransferRig.good(user)
    }
    #expect(await (try sending.run()).run().name == "complete")
    #expect(sending.users(.refused).count == 20 && sending.store.users[50]?.reason == .uselessAnswer)
    let receiving = try TransferRig(.receiving)
    receiving.fill(1000)
    receiving.answer = { user in
      let isTaken = user.number % 50 == 0
      return .account(
        TransferRig.subject("000002.new\(isTaken ? user.number - 1 : user.number).0002"), address: nil, isPrivate: false
      )
    }
    #expect(await (try receiving.run()).run().name == "complete")
    #expect(receiving.users(.conflict).count == 20 && receiving.users(.done).count == 980)
  }

  // MARK: Killed

  /// Apple has answered, and the store has it or has it not: the next process cannot know.
  @Test func whoeverIsKilledRepeatsAtMostWhatWasUnderWay() async throws {
    let rig = try TransferRig()
    rig.fill(2000)
    rig.answer = { $0.number % 100 == 7 ? TransferRig.withdrawn : TransferRig.good($0) }
    for kill in 1...10 {
      let killed = try rig.run()
      var isDead = false
      rig.store.before = { _ throws(AccountStoreError) in
        if isDead { throw AccountStoreError(.closed, "killed") }
      }
      // Each second one dies behind the commit, and never learns of it.
      rig.store.after = { _ throws(AccountStoreError) in
        guard rig.users(.done).count > kill * 150 else { return }
        isDead = true
        if kill % 2 == 0 { throw AccountStoreError(.closed, "killed") }
      }
      _ = await killed.run()
      rig.store.before = { _ in }
      rig.store.after = { _ in }
    }
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.users(.done).count == 1980 && rig.users(.refused).count == 20)
    let most = 2000 + 10 * 33
    #expect(rig.asked.count <= most)
    #expect(rig.counts.values.allSatisfy { $0 <= 11 })
  }

  @Test func whoHasLostTheLeaseStops() async throws {
    let rig = try TransferRig()
    rig.fill(2000)
    let (first, second) = (try rig.run(), try rig.run())
    rig.store.holder = first.lease.holder
    rig.answer = { user in
      if user.number == 100 { rig.store.holder = second.lease.holder }
      return TransferRig.good(user)
    }
    #expect(await first.run().name == "leaseLost")
    let written = rig.users(.done).count
    #expect(written <= 100 + 16)
    #expect(await second.run().name == "complete")
    #expect(rig.users(.done).count == 2000)
  }

  @Test func whoIsToldToEndWritesWhatIsUnderWay() async throws {
    let rig = try TransferRig()
    rig.fill(2000)
    let run = try rig.run()
    rig.answer = { user in
      if user.number == 500 { run.end() }
      return TransferRig.good(user)
    }
    #expect(await run.run().name == "ended")
    #expect(rig.users(.done).count == rig.asked.count && rig.asked.count < 520)
  }

  @Test func aStoreThatIsAwayForAWhileCostsNothing() async throws {
    let rig = try TransferRig()
    rig.fill(500)
    var failures = 3
    rig.store.before = { call throws(AccountStoreError) in
      guard call == "record", failures > 0, rig.asked.count > 100 else { return }
      failures -= 1
      throw AccountStoreError(.unavailable, "away")
    }
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.users(.done).count == 500 && rig.asked.count == 500 && failures == 0)
  }

  // MARK: The 60 days

  @Test func beforeTheAcceptanceOnlyGeneratingWorks() async throws {
    for accepted in [nil, VirtualClock.start + .seconds(3600)] {
      let sending = try TransferRig(accepted: accepted)
      sending.fill(10)
      #expect(await (try sending.run()).run().name == "complete")
      let receiving = try TransferRig(.receiving, accepted: accepted)
      receiving.fill(10)
      #expect(await (try receiving.run()).run().name == "notAccepted")
      #expect(receiving.asked.isEmpty)
    }
  }

  @Test func itEndsWithTheSixtyDays() async throws {
    for side in TransferPlan.Side.allCases {
      let rig = try TransferRig(side, accepted: VirtualClock.start - TransferPlan.window + .seconds(5))
      rig.fill(1000)
      #expect(await (try rig.run()).run().name == "windowOver")
      #expect(495...510 ~= rig.users(.done).count)
      #expect(await (try rig.run()).run().name == "windowOver")
    }
  }

  // MARK: The first user

  @Test func oneUserIsTriedBeforeTheOthers() async throws {
    for side in TransferPlan.Side.allCases {
      let rig = try TransferRig(side, tried: nil)
      rig.fill(100)
      rig.answer = { $0.number <= 3 ? TransferRig.withdrawn : TransferRig.good($0) }
      let run = try rig.run()
      #expect(await run.run().name == "complete")
      #expect(run.progress.trial == (side == .sending ? .thereAlone : .exchanged))
      let first = rig.asked.prefix(5).map(\.number)
      #expect(first == [1, 2, 3, 4, 5])
      #expect(rig.counts.values.allSatisfy { $0 == 1 })
      #expect(try rig.store.transferPlans().first?.triedAt != nil)
    }
  }

  /// `siwa migrate accept` corrects the date while the first user is tried.
  @Test func whenTheTransferWasAcceptedIsNotForgottenByTheTrial() async throws {
    let rig = try TransferRig(tried: nil)
    rig.fill(10)
    var corrected = rig.plan
    corrected.acceptedAt = TransferRig.accepted - .seconds(3600)
    rig.answer = { [corrected] user throws(AppleTokenError) in
      do throws(AccountStoreError) { _ = try rig.store.update(corrected) } catch { throw Self.late }
      return TransferRig.good(user)
    }
    #expect(await (try rig.run()).run().name == "complete")
    let plan = try #require(try rig.store.transferPlans().first)
    #expect(plan.acceptedAt == corrected.acceptedAt && plan.triedAt != nil)
  }

  @Test func anIdentifierIsExchangedThereAndBackWhereTheOtherKeyIsAtHand() async throws {
    for isGood in [true, false] {
      let rig = try TransferRig(tried: nil)
      rig.fill(100)
      rig.wayBack = { $0.text == "001876.r1" && isGood }
      let run = try rig.run()
      #expect(await run.run().name == (isGood ? "complete" : "useless"))
      #expect(run.progress.trial == (isGood ? .thereAndBack : nil))
      if !isGood { #expect(rig.asked.count == 1 && rig.users(.waiting).count == 100) }
    }
  }

  @Test func aPlanThatNeverPassedItsTrialStartsNoBatch() async throws {
    let answers: [(ending: String, answer: @Loop (TransferUser) throws(AppleTokenError) -> TransferResult.Answer)] = [
      ("allRefused", { _ in TransferRig.withdrawn }),
      ("useless", { .account(TransferRig.subject($0.transferSubject?.text ?? ""), address: nil, isPrivate: false) }),
      ("appleFails", { _ throws(AppleTokenError) in throw Self.late }),
      ("misconfigured", { _ throws(AppleTokenError) in throw AppleTokenError(.invalidClient, "no") }),
    ]
    for (name, answer) in answers {
      let rig = try TransferRig(.receiving, tried: nil)
      rig.fill(1000)
      rig.answer = { user throws(AppleTokenError) in try answer(user) }
      #expect(await (try rig.run()).run().name == name)
      #expect(rig.asked.count <= 100 && rig.users(.waiting).count == 1000)
      #expect(try rig.store.transferPlans().first?.triedAt == nil)
    }
  }
}
