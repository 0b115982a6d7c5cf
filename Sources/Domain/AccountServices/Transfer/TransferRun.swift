package import AccountEvents
package import AccountStore
package import AppleID
package import EventLoop

/// Asks Apple about the users of a plan, at a pace, and has the store write down what it says: the same for the sending team
/// and the receiving one.
///
/// A user without a result in the store is asked about, in the order of their numbers: whatever is killed when, the next run
/// goes on with the first of them. What was under way then is asked again, `2 * concurrency` users at most, and Apple says the
/// same of them. A refusal is one user's and stops nothing, once Apple has said something of somebody else; what stays in
/// doubt is asked again a little later; what only an operator can put right stops all at once, and the users stay as they
/// were.
@Loop
package final class TransferRun {
  /// How far it is.
  package struct Progress: Sendable, Hashable {
    /// Users of whom the store has got an answer, a refusal, or what a person has to look at.
    package internal(set) var done = 0, refused = 0, conflicts = 0
    /// Questions that were asked again, and users who were given up for this run: they wait as before.
    package internal(set) var again = 0, left = 0
    /// The first of those who were given up, 20 at most.
    package internal(set) var firstLeft: [Left] = []
    /// How it went when one user was tried; nil where none was.
    package internal(set) var trial: Trial?
    /// How much of the agreed rate Apple can keep up with.
    package internal(set) var share = 1.0
    /// The last time that nobody was to be asked for long; nil where there was none.
    package internal(set) var rest: Rest?

    /// Of how many users it is known what came of them.
    package var answered: Int { done + refused + conflicts }
  }

  /// Somebody who was given up for this run, by the operator's key, and what Apple's last answer was.
  package struct Left: Sendable, Hashable {
    /// What the operator knows the user by.
    package let key: String
    /// Why nothing is known of them.
    package let code: AppleTokenError.Code
  }

  /// What is known from trying one user.
  package enum Trial: Sendable, Hashable {
    /// Sending: there is an identifier, and the other team gets an account for it.
    case thereAndBack
    /// Sending: there is an identifier. Whether it is good the other team's first exchange says.
    case thereAlone
    /// Receiving: there is an account.
    case exchanged
  }

  /// Why it is over.
  package enum Ending: Sendable {
    /// Apple was asked about every user.
    case complete
    /// It was told to end.
    case ended
    /// Another process does it now.
    case leaseLost
    /// The plan is gone.
    case planGone
    /// The transfer is not accepted yet, as far as the plan knows: only the sending team can do something.
    case notAccepted
    /// The 60 days are over.
    case windowOver
    /// Apple has answered nothing for a while; what it said last.
    case appleFails(AppleTokenError)
    /// Something of that team is set wrongly, here or at Apple: an operator has to put it right.
    case misconfigured(AppleTokenError, of: TeamID)
    /// Apple refuses everybody. Nothing was concluded from that.
    case allRefused
    /// What Apple answers is of no use.
    case useless
    /// Many in a row came to the accounts of others.
    case allConflicts
    /// The store fails.
    case store(AccountStoreError)
  }

  /// Whom a run asks about.
  package enum Question: Sendable, Hashable {
    /// Those of whom Apple has not said anything yet.
    case waiting
    /// Those whom Apple has refused before. Who is refused again stays as they are.
    case refusedAgain
  }

  /// What an operator believes though a run would rather stop.
  package struct Beliefs: OptionSet, Sendable {
    /// The beliefs, a bit each.
    package let rawValue: Int
    /// Beliefs by their bits.
    package init(rawValue: Int) { self.rawValue = rawValue }
    /// All whom Apple refuses have withdrawn consent, however many they are in a row, and though it says nothing of anybody.
    package static let refusals = Beliefs(rawValue: 1)
    /// However many in a row come to the accounts of others, each is a conflict of its own.
    package static let conflicts = Beliefs(rawValue: 2)
  }

  /// Renews the lease; false where it is somebody else's.
  package typealias Renewal = @Loop @Sendable (_ lease: Lease) async throws(AccountStoreError) -> Bool

  /// How many users are read from the store at once, and written there.
  static let page = 512
  /// So many users wait at most to be asked about again.
  private static let mostAgain = 1024
  /// How often a user is asked about who stays in doubt, and how long it rests before the second time: doubling with each.
  static let attempts = 5
  static let firstRest = Duration.seconds(1)
  /// So many answers in a row that leave something in doubt may be Apple's failure, and not one user's: somebody is asked about
  /// of whom Apple has said something before. Where it does so again, it is the users, and twice as many may follow, up to
  /// `mostDoubtsInARow`.
  static let (doubtsInARow, mostDoubtsInARow) = (3, 96)
  /// Who watches is told of a rest that is as long.
  private static let longRest = Duration.seconds(10)
  /// So many of those who were given up are named.
  static let mostNamed = 20
  /// So many 429 are Apple's wish that all be asked more slowly. Each question that is answered takes a tenth of one away: one
  /// in a hundred is hardly ever so many, and where all are throttled the fourth is.
  static let (mostThrottles, throttleRelief) = (4.0, 0.1)
  /// Where Apple refuses so many users in a row, it is hardly they who have withdrawn consent.
  static let mostRefusedInARow = 100
  /// So many of those of whom Apple has said something before are asked about, where it is to be known whether it still does.
  static let mostControls = 5
  /// So many useless answers in a row and it is over; and so many conflicts.
  static let (mostUselessInARow, mostConflictsInARow) = (5, 5)
  /// So many of the last identifiers are remembered.
  static let remembered = 1024

  let store: any TransferStore
  let apple: TransferApple
  let beliefs: Beliefs
  let question: Question
  let clock: AskingClock
  let waiting: Waiting
  private let renew: Renewal
  private let concurrency: Int
  let patience: Int

  /// The plan as it stands.
  package internal(set) var plan: TransferPlan
  /// Called whenever the progress has changed.
  package var tell: @Loop (Progress) -> Void = { _ in }
  /// How far it is.
  package internal(set) var progress = Progress()
  /// When Apple may be asked next.
  var pace: ApplePace
  /// The lease, as it was renewed last.
  package private(set) var lease: Lease
  private var renewal: MonotonicTime
  /// Why it ends, once that is known.
  var ending: Ending?

  private var users = FIFO<TransferUser>()
  private var lastRead: Int64 = 0
  private var isFetching = false
  private var isAllRead = false
  var retries: [(user: TransferUser, attempt: Int, due: MonotonicTime)] = []
  private(set) var inFlight = 0
  /// How many questions were asked: the number of the last one.
  private(set) var questions = 0
  /// Answers that wait for the store, and those among them that are on their way.
  var answers: [TransferResult] = []
  var isFlushing = false
  /// Refusals of which nobody knows yet whether they are the users', each with the number of its question.
  var doubted: [(result: TransferResult, question: Int)] = []
  var (refusedInARow, uselessInARow, conflictsInARow) = (0, 0, 0)
  /// How many answers in a row left something in doubt, and how many may.
  var (doubtfulInARow, doubtLimit) = (0, TransferRun.doubtsInARow)
  /// Those who are asked about next to learn whether Apple answers at all, and whether there may be any.
  var (controls, mayHaveControls) = ([TransferUser](), true)
  /// How many 429 there were lately.
  var throttles = 0.0
  var identifiers = RecentIdentifiers(TransferRun.remembered)
  var lastError: AppleTokenError?

  /// A run of the plan, by whoever holds `lease`: `rate` requests a second, so many at once.
  ///
  /// - `question`: whom it asks about.
  /// - `beliefs`: what does not end it.
  /// - `patience`: after so many failures of Apple's in a row it ends.
  package init(
    _ plan: TransferPlan, _ store: any TransferStore, under lease: Lease, renew: @escaping Renewal,
    apple: TransferApple, rate: Int, concurrency: Int, question: Question = .waiting, beliefs: Beliefs = [],
    patience: Int, clock: AskingClock
  ) {
    precondition(concurrency > 0, "somebody is asked")
    (self.plan, self.store, self.lease, self.renew, self.apple) = (plan, store, lease, renew, apple)
    (self.concurrency, self.question, self.beliefs) = (concurrency, question, beliefs)
    (self.patience, self.clock) = (patience, clock)
    pace = ApplePace(Double(rate), at: clock.now())
    renewal = clock.now() + Lease.pulse
    waiting = Waiting(clock)
  }

  /// How many answers would be asked for again if the process were killed now.
  var held: Int { inFlight + answers.count + doubted.count }

  /// Works until nobody is left or something ends it, and what was under way is written down.
  package func run() async -> Ending {
    await work()
    await waiting.change { self.inFlight > 0 || self.isFlushing || self.isFetching }
    await flush()
    return ending ?? .complete
  }

  /// Asks about nobody new; what is under way comes to its end.
  package func end() { stop(.ended) }

  /// Ends it, for the first reason that there is.
  func stop(_ reason: Ending) {
    if ending == nil { ending = reason }
    switch reason {
    // Who is in doubt waits as before, also where something good comes of a question that is under way.
    case .useless, .allRefused: doubted = []
    default: break
    }
    waiting.end()
  }

  // MARK: Who is next

  private func work() async {
    if let obstacle { return stop(obstacle) }
    if needsTrial { await tryOne() }
    while ending == nil {
      if let obstacle { return stop(obstacle) }
      guard await isOurs() else { return }
      refill()
      let now = clock.now()
      let slot = pace.next(at: now)
      if slot > now {
        await rest(until: slot, since: now)
      } else if isFull {
        await waiting.change { self.isFull && self.ending == nil }
      } else if areRefusalsInDoubt {
        await settleDoubts()
        await flush()
      } else if isAppleInDoubt, mayHaveControls, isAnybodyLeft {
        await askControl()
      } else if let next = next(at: now) {
        ask(next.user, next.attempt, at: now)
      } else if !isCrowded, isFetching || inFlight > 0 && retries.isEmpty {
        // Who is under way may have to be asked about again.
        let count = retries.count
        await waiting.change {
          (self.isFetching || self.inFlight > 0) && self.users.isEmpty && self.retries.count == count
            && self.ending == nil
        }
      } else if let due = retries.map(\.due).min() {
        await rest(until: due, since: now)
      } else {
        return await settleDoubts()
      }
    }
  }

  /// Asks nobody until then, or until the lease is to be renewed. Where it takes long, that is told.
  private func rest(until end: MonotonicTime, since now: MonotonicTime) async {
    if end - now >= Self.longRest, let code = lastError?.code {
      progress.rest = Rest(until: end, code: code)
      tell(progress)
    }
    await waiting.nap(until: min(end, renewal))
  }

  /// What keeps everybody from being asked.
  private var obstacle: Ending? {
    switch TransferWindow(plan).state(at: clock.wall()) {
    case .closed: .windowOver
    case .open: nil
    case .unknown, .notYet: plan.side == .sending ? nil : .notAccepted
    }
  }

  /// Whether nobody new is asked about before some were asked about again.
  private var isCrowded: Bool { retries.count >= Self.mostAgain }

  /// Whether somebody is to be asked about still, now or again.
  private var isAnybodyLeft: Bool { !users.isEmpty || !retries.isEmpty || !isAllRead }

  private var isFull: Bool { inFlight >= concurrency || answers.count >= concurrency }

  private func next(at now: MonotonicTime) -> (user: TransferUser, attempt: Int)? {
    // Somebody new says more of Apple than those who were in doubt before.
    if isAppleInDoubt, !isCrowded, let user = users.popFirst() { return (user, 1) }
    if let index = retries.firstIndex(where: { $0.due <= now }) {
      let retry = retries.remove(at: index)
      progress.again += 1
      return (retry.user, retry.attempt)
    }
    return isCrowded ? nil : users.popFirst().map { ($0, 1) }
  }

  /// Reads the next users while those before them are asked about.
  private func refill() {
    guard !isFetching, !isAllRead, users.count < Self.page / 2 else { return }
    isFetching = true
    Task(executorPreference: Loop.executor) { await self.fetch() }
  }

  private func fetch() async {
    defer {
      isFetching = false
      waiting.signal()
    }
    do throws(AccountStoreError) {
      let page = try await persistently { () throws(AccountStoreError) in
        try await self.store.transferUsers(
          of: self.plan, in: self.question == .waiting ? .waiting : .refused, after: self.lastRead, limit: Self.page)
      }
      for user in page { users.append(user) }
      if let last = page.last { lastRead = last.number } else { isAllRead = true }
    } catch {
      stop(.store(error))
    }
  }

  /// Whether the lease is ours still, and the plan there: asked every few seconds.
  private func isOurs() async -> Bool {
    guard clock.now() >= renewal else { return true }
    let next = Lease(lease.name, of: lease.holder, at: clock.wall())
    do throws(AccountStoreError) {
      let isRenewed = try await persistently { () throws(AccountStoreError) in try await self.renew(next) }
      guard isRenewed else {
        stop(.leaseLost)
        return false
      }
      // When the transfer was accepted may be corrected meanwhile.
      let plans = try await persistently { () throws(AccountStoreError) in try await self.store.transferPlans() }
      guard let known = plans.first(where: { $0.name == plan.name }) else {
        stop(.planGone)
        return false
      }
      plan.acceptedAt = known.acceptedAt
    } catch {
      stop(.store(error))
      return false
    }
    lease = next
    renewal = clock.now() + Lease.pulse
    return true
  }

  // MARK: Asking

  private func ask(_ user: TransferUser, _ attempt: Int, at now: MonotonicTime) {
    let question = beginQuestion(at: now)
    inFlight += 1
    // It comes to its end where the run is told to end: Apple may have been asked by then.
    Task(executorPreference: Loop.executor) { await self.carry(user, attempt, question) }
  }

  /// Counts a question that is asked now. Returns its number.
  func beginQuestion(at now: MonotonicTime) -> Int {
    pace.take(at: now, random: 0)
    questions += 1
    return questions
  }

  private func carry(_ user: TransferUser, _ attempt: Int, _ question: Int) async {
    do throws(AppleTokenError) {
      let answer = try await apple.ask(user)
      succeeded()
      (doubtLimit, mayHaveControls) = (Self.doubtsInARow, true)
      judge(TransferResult(user.number, answer), of: user, asked: question)
    } catch {
      fail(error, user, attempt)
    }
    tell(progress)
    inFlight -= 1
    waiting.signal()
    await flush()
  }
}

/// How Apple is asked about the users of a plan.
package struct TransferApple: Sendable {
  /// Asks about a user.
  typealias Question = @Loop @Sendable (TransferUser) async throws(AppleTokenError) -> TransferResult.Answer
  /// Whether the other team gets an account for an identifier.
  typealias WayBack = @Loop @Sendable (TransferSubject) async throws(AppleTokenError) -> Bool

  let ask: Question
  let wayBack: WayBack?

  /// Questions of one's own. `wayBack` is there where the other team's key is at hand, too.
  package init(
    _ ask: @escaping @Loop @Sendable (TransferUser) async throws(AppleTokenError) -> TransferResult.Answer,
    wayBack: (@Loop @Sendable (TransferSubject) async throws(AppleTokenError) -> Bool)? = nil
  ) { (self.ask, self.wayBack) = (ask, wayBack) }
}
