import AccountEvents
import AccountStore
import AppleID
import EventLoop

// One user before all the others: what is set wrongly shows with the first, and not after a million.
extension TransferRun {
  /// So many users are tried at most: the first may have withdrawn consent.
  private static var mostTried: Int { 100 }
  /// How often Apple is asked about one of them.
  private static var trials: Int { 4 }

  /// Tries users until there is one of whom Apple says something, notes that it went well, or ends the run.
  func tryOne() async {
    do throws(AccountStoreError) {
      let users = try await persistently { () throws(AccountStoreError) in
        try await self.store.transferUsers(of: self.plan, in: .waiting, after: 0, limit: Self.mostTried)
      }
      for user in users where ending == nil {
        guard let answer = await answer(about: user) else { return }
        var trial = Trial.exchanged
        if case .identifier(let identifier) = answer, !answer.isUseless(for: user) {
          // Before it is written down: what nobody can exchange is no result.
          guard let found = await wayBack(identifier) else { return }
          trial = found
        }
        judge(TransferResult(user.number, answer), of: user)
        if uselessInARow > 0 { return stop(.useless) }
        if case .refused = answer { continue }
        return try await pass(trial)
      }
      guard ending == nil, !users.isEmpty else { return }
      // Nobody can be tried. What is concluded from it is up to an operator.
      if beliefs.contains(.refusals) { return await flush() }
      stop(.allRefused)
    } catch {
      stop(.store(error))
    }
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

  /// What Apple says of one user; nil where the run has to end.
  func answer(about user: TransferUser) async -> TransferResult.Answer? {
    await insistently { () throws(AppleTokenError) in try await self.apple.ask(user) }
  }

  /// Has the other team exchange the identifier, where its key is at hand and the transfer is accepted.
  private func wayBack(_ identifier: TransferSubject) async -> Trial? {
    guard let exchange = apple.wayBack, TransferWindow(plan).state(at: clock.wall()) == .open else {
      return .thereAlone
    }
    guard let isGood = await insistently({ () throws(AppleTokenError) in try await exchange(identifier) }) else {
      return nil
    }
    guard isGood else {
      stop(.useless)
      return nil
    }
    return .thereAndBack
  }

  private func insistently<Value>(_ body: @Loop () async throws(AppleTokenError) -> Value) async -> Value? {
    for attempt in 1... {
      var rest = Self.firstRest
      do throws(AppleTokenError) {
        let value = try await body()
        succeeded()
        return value
      } catch {
        guard noteFailure(error), ending == nil else { return nil }
        if attempt >= Self.trials {
          stop(.appleFails(error))
          return nil
        }
        rest = max(rest, error.retryAfter ?? .zero)
      }
      await waiting.nap(until: max(pace.next(at: clock.now()), clock.now() + rest))
      if ending != nil { return nil }
    }
    return nil
  }
}
