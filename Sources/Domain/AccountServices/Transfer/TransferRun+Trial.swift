import AccountEvents
import AccountStore
import AppleID
import EventLoop

// One user before all the others: what is set wrongly shows with the first, and not after a million.
extension TransferRun {
  /// So many users are tried at most: the first may have withdrawn consent.
  private static var mostTried: Int { 100 }
  /// So many of them may stay in doubt.
  private static var mostInDoubt: Int { 5 }
  /// How often Apple is asked about one of them.
  private static var trials: Int { 4 }

  /// Whether nobody was tried yet, or nobody there and back though that can be done by now: it cannot before the transfer is
  /// accepted.
  var needsTrial: Bool {
    guard let triedAt = plan.triedAt else { return true }
    guard apple.wayBack != nil, let acceptedAt = plan.acceptedAt, triedAt < acceptedAt else { return false }
    return TransferWindow(plan).state(at: clock.wall()) == .open
  }

  /// Tries users until there is one of whom Apple says something, notes that it went well, or ends the run. Those of whom it has
  /// said something before come first.
  func tryOne() async {
    do throws(AccountStoreError) {
      let (trial, isLost) = await tryKnown(try await knownUsers())
      if let trial { return try await pass(trial) }
      guard ending == nil else { return }
      let users = try await candidates()
      if users.isEmpty, isLost { return stop(.useless) }
      var (inDoubt, isAnybodyRefused) = (0, false)
      for user in users where ending == nil {
        let question = questions + 1
        switch await tryNew(user, question) {
        case nil: return
        case .success(nil): isAnybodyRefused = true
        case .success(let trial?): return try await pass(trial)
        case .failure(let error):
          inDoubt += 1
          if inDoubt == Self.mostInDoubt || inDoubt == users.count { return stop(.appleFails(error)) }
        }
      }
      guard ending == nil, isAnybodyRefused else { return }
      // Nobody can be tried. What is concluded from it is up to an operator.
      if beliefs.contains(.refusals) { return await flush() }
      stop(.allRefused)
    } catch {
      stop(.store(error))
    }
  }

  /// Who is tried where Apple has said nothing of anybody yet: users from the beginning, the middle and the end, as those who
  /// stand together may all have used the app long ago, or never.
  private func candidates() async throws(AccountStoreError) -> [TransferUser] {
    let first = try await waitingUsers(after: 0, Self.mostTried)
    guard first.count == Self.mostTried else { return first }
    let last = try await persistently { () throws(AccountStoreError) in try await self.store.census(of: self.plan).users
    }
    let part = Self.mostTried / 3
    var users = Array(first.prefix(Self.mostTried - 2 * part))
    for place in [last / 2, last - Int64(part)] {
      users += try await waitingUsers(after: max(place, users.last?.number ?? 0), part)
    }
    return users
  }

  private func waitingUsers(after number: Int64, _ limit: Int) async throws(AccountStoreError) -> [TransferUser] {
    try await persistently { () throws(AccountStoreError) in
      try await self.store.transferUsers(of: self.plan, in: .waiting, after: number, limit: limit)
    }
  }

  /// Tries somebody of whom Apple has said nothing yet, and has the answer judged. The trial is nil where they are refused, and
  /// all of it where the run has to end.
  private func tryNew(_ user: TransferUser, _ question: Int) async -> Result<Trial?, AppleTokenError>? {
    switch await answer(about: user) {
    case nil: return nil
    case .failure(let error): return .failure(error)
    case .success(let answer):
      var trial = Trial.exchanged
      if case .identifier(let identifier) = answer, !answer.isUseless(for: user) {
        // Before it is written down: what nobody can exchange is no result.
        switch await wayBack(identifier) {
        case nil: return nil
        case .failure(let error): return .failure(error)
        case .success(nil):
          stop(.useless)
          return nil
        case .success(let found?): trial = found
        }
      }
      judge(TransferResult(user.number, answer), of: user, asked: question)
      if uselessInARow > 0 {
        stop(.useless)
        return nil
      }
      if case .refused = answer { return .success(nil) }
      return .success(trial)
    }
  }

  /// Tries those of whom Apple has said something before; each may have withdrawn consent since. Without a trial none of them
  /// could be tried, or the run has to end; `isLost` says whether the other team got no account for one.
  private func tryKnown(_ users: [TransferUser]) async -> (trial: Trial?, isLost: Bool) {
    var (isLost, isAnswered, failure): (Bool, Bool, AppleTokenError?) = (false, false, nil)
    for user in users where ending == nil {
      if plan.triedAt == nil {
        switch await answer(about: user) {
        case nil: return (nil, false)
        case .failure(let error):
          failure = error
          continue
        case .success(.refused):
          isAnswered = true
          continue
        case .success(let answer):
          if answer.isUseless(for: user) {
            stop(.useless)
            return (nil, false)
          }
        }
      }
      guard plan.side == .sending else { return (.exchanged, false) }
      guard let identifier = user.transferSubject else { continue }
      switch await wayBack(identifier) {
      case nil: return (nil, false)
      case .failure(let error): failure = error
      case .success(nil): (isLost, isAnswered) = (true, true)
      case .success(let trial?): return (trial, false)
      }
    }
    if let failure, !isAnswered { stop(.appleFails(failure)) }
    return (nil, isLost)
  }

  private func pass(_ trial: Trial) async throws(AccountStoreError) {
    plan.triedAt = clock.wall()
    // When the transfer was accepted may have been corrected meanwhile.
    var note = plan
    note.acceptedAt = nil
    guard try await store.update(note) else { return stop(.planGone) }
    progress.trial = trial
    await flush()
    tell(progress)
  }

  /// What Apple says of one user, or why it stays in doubt; nil where the run has to end.
  func answer(about user: TransferUser) async -> Result<TransferResult.Answer, AppleTokenError>? {
    await insistently(plan.team) { () throws(AppleTokenError) in try await self.apple.ask(user) }
  }

  /// Has the other team exchange the identifier, where its key is at hand and the transfer is accepted. The trial is nil where
  /// it gets no account.
  private func wayBack(_ identifier: TransferSubject) async -> Result<Trial?, AppleTokenError>? {
    guard let exchange = apple.wayBack, TransferWindow(plan).state(at: clock.wall()) == .open else {
      return .success(.thereAlone)
    }
    let isGood = await insistently(plan.otherTeam) { () throws(AppleTokenError) in try await exchange(identifier) }
    return isGood?.map { $0 ? .thereAndBack : nil }
  }

  /// Asks in the name of that team until there is an answer, a few times. What stays in doubt then may be one user's: whoever
  /// calls asks about somebody else. Nil where the run has to end.
  private func insistently<Value>(
    _ team: TeamID, _ body: @Loop () async throws(AppleTokenError) -> Value
  ) async -> Result<Value, AppleTokenError>? {
    for attempt in 1... {
      await waiting.nap(until: pace.next(at: clock.now()))
      if ending != nil { return nil }
      _ = beginQuestion(at: clock.now())
      var rest = Self.firstRest
      do throws(AppleTokenError) {
        let value = try await body()
        succeeded()
        return .success(value)
      } catch {
        // How many there were in a row says nothing where it is always the same question.
        if isOnesOwn(error) { doubtfulInARow = 0 }
        guard noteFailure(error, of: team), ending == nil else { return nil }
        if attempt >= Self.trials {
          if isOnesOwn(error) { return .failure(error) }
          stop(.appleFails(error))
          return nil
        }
        rest = max(rest, error.retryAfter ?? .zero)
      }
      await waiting.nap(until: clock.now() + rest)
      if ending != nil { return nil }
    }
    return nil
  }
}
