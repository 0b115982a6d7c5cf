import AccountStore
import EventLoop

// What becomes of Apple's answers.
extension TransferRun {
  /// Takes an answer for good, or has it wait until it is known what it is worth.
  func judge(_ result: TransferResult, of user: TransferUser) {
    if case .refused(let reason) = result.answer {
      refuse(user, reason)
    } else if result.answer.isUseless(for: user) || !isNew(result.answer, of: user) {
      uselessInARow += 1
      doubted.append(TransferResult(user.number, .refused(.uselessAnswer)))
      if uselessInARow >= Self.mostUselessInARow { stop(.useless) }
    } else {
      (refusedInARow, uselessInARow) = (0, 0)
      release()
      answers.append(result)
    }
  }

  /// Refusals come in a row where it is not the users who are refused: then none is written down.
  private func refuse(_ user: TransferUser, _ reason: TransferRefusal) {
    if question == .refusedAgain {
      progress.refused += 1
      return
    }
    let result = TransferResult(user.number, .refused(reason))
    // Of one whose row does not open Apple was not asked.
    if reason == .damaged { return answers.append(result) }
    refusedInARow += 1
    doubted.append(result)
    if beliefs.contains(.refusals) {
      release()
    } else if refusedInARow >= Self.mostRefusedInARow {
      stop(.allRefused)
    }
  }

  private func isNew(_ answer: TransferResult.Answer, of user: TransferUser) -> Bool {
    guard case .identifier(let identifier) = answer else { return true }
    return identifiers.note(identifier, of: user.number)
  }

  /// What was refused is the users' own: it can be written down.
  func release() {
    answers += doubted
    doubted = []
  }

  /// Everybody was asked about, and behind the last of whom Apple said something there are some who were refused. That may be
  /// everybody's from some moment on: so Apple is asked about somebody of whom it has said something before. Where it does
  /// not do so again, nothing is concluded.
  func settleDoubts() async {
    if doubted.isEmpty || beliefs.contains(.refusals) { return release() }
    await flush()
    await waiting.change { self.isFlushing }
    guard ending == nil else { return }
    do throws(AccountStoreError) {
      let known = try await persistently { () throws(AccountStoreError) in
        try await self.store.transferUsers(of: self.plan, in: .done, after: 0, limit: Self.mostControls)
      }
      for user in known {
        guard let answer = await answer(about: user) else { return }
        if case .refused = answer { continue }
        if !answer.isUseless(for: user) { return release() }
      }
      stop(.allRefused)
    } catch {
      stop(.store(error))
    }
  }

  // MARK: The store

  /// Has the store write down what is known. While that is under way, the next ones gather.
  func flush() async {
    guard !isFlushing else { return }
    isFlushing = true
    while !answers.isEmpty {
      let some = Array(answers.prefix(Self.page))
      do throws(AccountStoreError) {
        let states = try await persistently { () throws(AccountStoreError) in
          try await self.store.record(some, of: self.plan, under: self.lease, at: self.clock.wall())
        }
        guard let states else {
          stop(.leaseLost)
          answers = []
          break
        }
        answers.removeFirst(some.count)
        count(some, states)
      } catch {
        // They wait in the store as before, and are asked about again.
        stop(.store(error))
        answers = []
      }
      waiting.signal()
    }
    isFlushing = false
    waiting.signal()
  }

  private func count(_ results: [TransferResult], _ states: [TransferUser.State]) {
    for state in states {
      switch state {
      case .done:
        progress.done += 1
        conflictsInARow = 0
      case .refused: progress.refused += 1
      case .waiting: break
      case .conflict:
        // The store knows of everybody who came to that account.
        progress.conflicts += 1
        conflictsInARow += 1
        if conflictsInARow >= Self.mostConflictsInARow, !beliefs.contains(.conflicts) { stop(.allConflicts) }
      }
    }
    tell(progress)
  }

  /// Does it again while the store cannot be reached, a few times.
  func persistently<Value>(
    _ body: @Loop () async throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    var pause = Duration.seconds(1)
    for _ in 1..<Self.storeAttempts {
      do throws(AccountStoreError) {
        return try await body()
      } catch {
        guard error.isTransient else { throw error }
      }
      await waiting.nap(until: clock.now() + pause)
      pause = min(pause + pause, .seconds(30))
    }
    return try await body()
  }

  private static var storeAttempts: Int { 6 }
}
