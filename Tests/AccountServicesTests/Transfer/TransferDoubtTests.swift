import AccountEvents
import AccountStore
import EventLoop
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleID

/// Whether it is Apple or the users where nothing can be concluded from the answers, one after the other.
@Loop @Suite(.timeLimit(.minutes(30))) struct TransferDoubtTests {
  private static let broken = AppleTokenError(.malformedAnswer, "not JSON")
  private static let late = AppleTokenError(.deadline, "nothing came")

  // MARK: What stays in doubt

  @Test(arguments: [AppleTokenError.Code.malformedAnswer, .unknownError, .unavailable])
  func threeInARowWhoStayInDoubtKeepNobodyElseWaiting(code: AppleTokenError.Code) async throws {
    let rig = try TransferRig()
    rig.fill(1000)
    rig.answer = { user throws(AppleTokenError) in
      if 500...502 ~= user.number { throw AppleTokenError(code, "of this user alone") }
      return TransferRig.good(user)
    }
    let run = try rig.run()
    #expect(await run.run().name == "complete")
    #expect(rig.users(.done).count == 997 && rig.users(.waiting) == [500, 501, 502])
    #expect(run.progress.left == 3 && run.progress.share == 1, "\(run.progress)")
    #expect(
      Set(run.progress.firstLeft) == Set((500...502).map { TransferRun.Left(key: "customer-\($0)", code: code) }))
    #expect(rig.clock.passed < .seconds(60), "\(rig.clock.passed)")
  }

  /// They are what a run leaves, and all that the next one finds; with a `Retry-After`, each holds all the others up.
  @Test(arguments: [(3, nil), (200, nil), (30, .seconds(2))] as [(Int, Duration?)])
  func thoseWhoStayInDoubtAreNotTakenForAppleWhereAllOfThemComeTogether(count: Int, retryAfter: Duration?) async throws
  {
    let rig = try TransferRig()
    rig.fill(count + 10)
    rig.answer = { user throws(AppleTokenError) in
      if user.number > 10 { throw AppleTokenError(.unavailable, "of this user alone", retryAfter: retryAfter) }
      return TransferRig.good(user)
    }
    _ = await (try rig.run()).run()
    let before = rig.asked.count
    for _ in 1...2 {
      let run = try rig.run(patience: 12)
      #expect(await run.run().name == "complete")
      #expect(run.progress.left == count && run.progress.firstLeft.count == min(count, TransferRun.mostNamed))
      #expect(run.progress.done == 0 && rig.users(.waiting).count == count)
    }
    #expect(rig.asked[before...].filter { $0.number > 10 }.count == 2 * count * TransferRun.attempts)
  }

  /// Nobody is there of whom Apple has said anything: whoever comes next says more than those who are in doubt.
  @Test func whereNobodyWasAnsweredBeforeSomebodyNewComesBeforeThoseInDoubt() async throws {
    let rig = try TransferRig()
    rig.fill(100)
    rig.answer = { user throws(AppleTokenError) in
      if user.number <= 3 { throw Self.broken }
      return TransferRig.good(user)
    }
    let run = try rig.run(concurrency: 1)
    #expect(await run.run().name == "complete")
    #expect(rig.asked.prefix(4).map(\.number) == [1, 2, 3, 4])
    #expect(run.progress.left == 3 && rig.users(.done).count == 97)
  }

  /// Apple answers of nobody: also not of those of whom it has before.
  @Test func whereAppleAnswersOfNobodyElseEitherItIsApple() async throws {
    let rig = try TransferRig()
    rig.fill(1000)
    rig.answer = { user throws(AppleTokenError) in
      if rig.users(.done).count >= 400 { throw Self.late }
      return TransferRig.good(user)
    }
    let run = try rig.run()
    guard case .appleFails(let error) = await run.run() else { return #expect(Bool(false), "it goes on") }
    #expect(error.code == .deadline && run.progress.share < 0.1 && run.progress.left == 0)
    #expect(rig.users(.waiting).count == 1000 - rig.users(.done).count)
  }

  /// A row that does not open is asked about nowhere.
  @Test func whoIsDamagedSaysNothingOfApple() async throws {
    let rig = try TransferRig()
    rig.fill(100)
    rig.answer = { user throws(AppleTokenError) in
      if user.reason == .damaged { return .refused(.damaged) }
      if user.number > 1 { throw Self.late }
      return TransferRig.good(user)
    }
    rig.store.after = { call throws(AccountStoreError) in rig.store.damage(1) }
    #expect(await (try rig.run()).run().name == "appleFails")
  }

  // MARK: Refusals

  /// Few of a team's accounts use the app, or those who have long been away stand together.
  @Test func manyRefusalsInARowAreTheUsersWhereAppleSaysSomethingOfSomebodyElse() async throws {
    let rig = try TransferRig()
    rig.fill(2000)
    rig.answer = { 300...1900 ~= $0.number ? TransferRig.withdrawn : TransferRig.good($0) }
    #expect(await (try rig.run()).run().name == "complete")
    #expect(rig.users(.refused).count == 1601 && rig.users(.done).count == 399)
    #expect(rig.asked.count <= 2000 + 17, "one of before for each hundred: \(rig.asked.count)")
  }

  /// Consent ends for everybody while answers are under way: one that took its time says nothing of those asked about later.
  @Test func anAnswerFromBeforeReleasesNoRefusalOfAfter() async throws {
    let rig = try TransferRig()
    rig.fill(200)
    rig.answer = { user in
      if user.number == 40 {
        // Asked about before all the others, and answered behind fifty of them.
        for _ in 0..<100_000 where rig.asked.count < 90 { await Loop.nextTurn() }
        return TransferRig.good(user)
      }
      return user.number > 40 || rig.asked.count > 41 ? TransferRig.withdrawn : TransferRig.good(user)
    }
    #expect(await (try rig.run()).run().name == "allRefused")
    #expect(rig.asked.count >= 90 && rig.users(.refused) == [], "\(rig.users(.refused).count)")
    #expect(rig.users(.done).count == 40)
  }

  // MARK: The first user

  @Test func aFirstUserWhoStaysInDoubtIsPassedOver() async throws {
    for count in [1, 4] {
      let rig = try TransferRig(tried: nil)
      rig.fill(100)
      rig.answer = { user throws(AppleTokenError) in
        if user.number <= count { throw Self.broken }
        return TransferRig.good(user)
      }
      let run = try rig.run()
      #expect(await run.run().name == "complete")
      #expect(run.progress.trial == .thereAlone && run.progress.left == count)
      #expect(rig.users(.waiting).count == count)
    }
  }

  @Test func fiveUsersWhoStayInDoubtAreApple() async throws {
    let rig = try TransferRig(tried: nil)
    rig.fill(100)
    rig.answer = { user throws(AppleTokenError) in
      if user.number <= 5 { throw Self.broken }
      return TransferRig.good(user)
    }
    #expect(await (try rig.run()).run().name == "appleFails")
    #expect(Set(rig.asked.map(\.number)) == Set(1...5) && rig.users(.waiting).count == 100)
  }

  /// Those who stand together may all have used the app long ago.
  @Test func usersFromTheMiddleAndTheEndAreTriedToo() async throws {
    for places in [5010...5400, 9990...10_000] as [ClosedRange<Int64>] {
      let rig = try TransferRig(tried: nil)
      rig.fill(10_000)
      rig.answer = { places.contains($0.number) ? TransferRig.good($0) : TransferRig.withdrawn }
      let run = try rig.run()
      #expect(await run.run().name == "complete")
      #expect(run.progress.trial == .thereAlone)
      #expect(rig.users(.waiting) == [] && rig.users(.done) == Array(places))
    }
  }

  @Test func whoWasAnsweredBeforeIsTriedFirst() async throws {
    let rig = try TransferRig(.receiving, tried: nil)
    rig.fill(300)
    // They have signed in meanwhile, and all the others never were users of the app.
    rig.store.sign(in: 299)
    rig.answer = { $0.number == 299 ? TransferRig.good($0) : TransferRig.withdrawn }
    let run = try rig.run()
    #expect(await run.run().name == "complete")
    #expect(run.progress.trial == .exchanged && rig.asked.first?.number == 299)
    #expect(rig.users(.refused).count == 299)
  }

  // MARK: There and back

  /// Before the acceptance there is no way back: it is tried as soon as there is one, and once.
  @Test func whatWasTriedBeforeTheAcceptanceIsTriedThereAndBackAfterIt() async throws {
    let rig = try TransferRig(accepted: VirtualClock.start + .seconds(3600), tried: nil)
    rig.fill(20)
    var back: [String] = []
    rig.wayBack = { identifier in
      back.append(identifier.text)
      return identifier.text != "001876.r1"
    }
    let early = try rig.run()
    #expect(await early.run().name == "complete" && early.progress.trial == .thereAlone)
    rig.clock.advance(by: .seconds(7200))
    let asked = rig.asked.count
    for _ in 1...2 { #expect(await (try rig.run()).run().name == "complete") }
    #expect(back == ["001876.r1", "001876.r2"], "the first one has withdrawn consent since")
    #expect(rig.asked.count == asked, "nobody is asked about anew")

    // The recipient is another one than was told.
    let wrong = try TransferRig(accepted: VirtualClock.start + .seconds(3600), tried: nil)
    wrong.fill(20)
    wrong.wayBack = { _ in false }
    #expect(await (try wrong.run()).run().name == "complete")
    wrong.clock.advance(by: .seconds(7200))
    #expect(await (try wrong.run()).run().name == "useless")
  }

  /// `siwa migrate accept` corrects the date while a batch is under way.
  @Test func whenTheTransferWasAcceptedIsReadAgainMeanwhile() async throws {
    let rig = try TransferRig()
    rig.fill(5000)
    var corrected = rig.plan
    corrected.acceptedAt = VirtualClock.start - TransferPlan.window
    rig.answer = { [corrected] user throws(AppleTokenError) in
      if user.number == 300 {
        do throws(AccountStoreError) { _ = try rig.store.update(corrected) } catch { throw Self.late }
      }
      return TransferRig.good(user)
    }
    #expect(await (try rig.run()).run().name == "windowOver")
    #expect(300..<4000 ~= rig.users(.done).count, "\(rig.users(.done).count)")
  }

  /// On the way back Apple is asked in the name of the other team.
  @Test func whatIsWrongOnTheWayBackIsTheOtherTeams() async throws {
    let rig = try TransferRig(tried: nil)
    rig.fill(10)
    rig.wayBack = { _ throws(AppleTokenError) in throw AppleTokenError(.invalidClient, "no such key") }
    let ending = await (try rig.run()).run()
    let words = try #require(ending.words(of: rig.plan, keys: TransferWordsTests.keys(of:), at: rig.clock.wall))
    #expect(words.contains("it does not take key THEIRS1234 as one of team \(TransferRig.theirs)"), "\(words)")
    #expect(!words.contains("OURS123456") && !words.contains("\(TransferRig.ours)"), "\(words)")
  }

  /// Also whoever is tried, or asked about to learn of Apple, is one of so many a second.
  @Test func theTrialKeepsToTheAgreedRate() async throws {
    let rig = try TransferRig(tried: nil)
    rig.fill(90)
    rig.answer = { $0.number < 90 ? TransferRig.withdrawn : TransferRig.good($0) }
    #expect(await (try rig.run(rate: 2)).run().name == "complete")
    #expect(rig.clock.passed > .seconds(44), "\(rig.clock.passed)")
  }
}
