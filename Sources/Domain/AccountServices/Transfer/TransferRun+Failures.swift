import AccountEvents
import AccountStore
import AppleID
import EventLoop

// What becomes of questions that Apple does not answer.
extension TransferRun {
  /// Apple has answered.
  func succeeded() {
    doubtfulInARow = 0
    throttles = max(0, throttles - Self.throttleRelief)
    pace.succeeded(at: clock.now())
    progress.share = pace.share
  }

  /// Has the user asked about again, or gives them up for this run.
  func fail(_ error: AppleTokenError, _ user: TransferUser, _ attempt: Int) {
    guard noteFailure(error, of: plan.team) else { return }
    if isOnesOwn(error), attempt >= Self.attempts {
      progress.left += 1
      if progress.firstLeft.count < Self.mostNamed { progress.firstLeft.append(Left(key: user.key, code: error.code)) }
    } else {
      var rest = Self.firstRest
      for _ in 1..<attempt { rest += rest }
      let due = clock.now() + max(rest, error.retryAfter ?? .zero)
      retries.append((user, isOnesOwn(error) ? attempt + 1 : attempt, due))
    }
  }

  /// Whether a failure counts as an attempt at the user: not where Apple was not asked, or asks for time.
  func isOnesOwn(_ error: AppleTokenError) -> Bool { error.code != .throttled && error.code != .unreachable }

  /// Slows down, or stops where time alone does not help. Says whether it is to be tried again. It is the team in whose name
  /// Apple was asked; and `isApples` where it is known not to be one user's.
  func noteFailure(_ error: AppleTokenError, of team: TeamID, isApples: Bool = false) -> Bool {
    lastError = error
    if error.needsOperator {
      stop(.misconfigured(error, of: team))
      return false
    }
    if error.code == .cancelled, ending != nil { return false }
    if isOnesOwn(error) { doubtfulInARow += 1 }
    if isSingle(error, isApples) { return true }
    slowDown(error)
    return true
  }

  private func slowDown(_ error: AppleTokenError) {
    pace.failed(at: clock.now(), retryAfter: error.retryAfter)
    progress.share = pace.share
    if pace.failures >= patience { stop(.appleFails(error)) }
  }

  /// Whether a failure says nothing of Apple: one of which nothing came, or which came too early, among many that were
  /// answered. Who was throttled waits for as long as Apple asks, and nobody else does.
  private func isSingle(_ error: AppleTokenError, _ isApples: Bool) -> Bool {
    guard error.code == .throttled else {
      // Of many in a row it is asked about somebody else first.
      return isOnesOwn(error) && error.retryAfter == nil && !isApples && (!isAppleInDoubt || mayHaveControls)
    }
    throttles = min(throttles + 1, Self.mostThrottles)
    return throttles < Self.mostThrottles
  }

  // MARK: Whose fault it is

  /// Whether so many answers in a row left something in doubt that it may be Apple, and not the users; or fewer, which have
  /// held everybody up.
  var isAppleInDoubt: Bool {
    doubtfulInARow >= doubtLimit || doubtfulInARow > 0 && pace.failures >= Self.doubtsInARow
  }

  /// Asks about somebody of whom Apple has said something before; nobody else is asked about meanwhile. Where Apple answers,
  /// those in doubt are so by themselves: they are asked about again, and given up in the end. Where it does not, it is Apple,
  /// and is asked more slowly. So nobody keeps a plan from its end, however many of them come together.
  func askControl() async {
    do throws(AccountStoreError) {
      if controls.isEmpty { controls = try await knownUsers() }
    } catch {
      return stop(.store(error))
    }
    guard let user = controls.popLast() else {
      mayHaveControls = false
      if isAppleInDoubt, let lastError { slowDown(lastError) }
      return
    }
    // Meanwhile somebody may have been answered.
    guard ending == nil, isAppleInDoubt else { return }
    _ = beginQuestion(at: clock.now())
    do throws(AppleTokenError) {
      _ = try await apple.ask(user)
      succeeded()
      doubtLimit = min(doubtLimit * 2, Self.mostDoubtsInARow)
    } catch {
      _ = noteFailure(error, of: plan.team, isApples: true)
    }
    tell(progress)
  }

  /// The first of those of whom Apple has said something before, and can be asked again.
  func knownUsers() async throws(AccountStoreError) -> [TransferUser] {
    try await persistently { () throws(AccountStoreError) in
      try await self.store.transferUsers(of: self.plan, in: .done, after: 0, limit: Self.mostControls)
    }.filter { $0.reason != .damaged }
  }
}

extension AppleTokenError {
  /// Whether somebody has to put something right before anybody can be asked about.
  var needsOperator: Bool {
    switch code {
    case .noKey, .unsigned, .malformedRequest, .certificate, .invalidClient, .unauthorizedClient, .forbidden,
      .invalidScope, .invalidGrant, .unsupportedGrantType:
      true
    case .unreachable, .interrupted, .deadline, .unavailable, .malformedAnswer, .unexpectedStatus, .cancelled,
      .throttled, .invalidToken, .invalidRequest, .unknownError:
      false
    }
  }
}
