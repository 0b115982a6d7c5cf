import AccountStore
import AppleID
import EventLoop

// What becomes of Apple's answers.
extension TransferRun {
  /// Takes the answer to that question for good, or has it wait until it is known what it is worth.
  func judge(_ result: TransferResult, of user: TransferUser, asked question: Int) {
    if case .refused(let reason) = result.answer {
      refuse(user, reason, question)
    } else if result.answer.isUseless(for: user) || !isNew(result.answer, of: user) {
      uselessInARow += 1
      doubted.append((TransferResult(user.number, .refused(.uselessAnswer)), question))
      if uselessInARow >= Self.mostUselessInARow { stop(.useless) }
    } else {
      release(askedBefore: question)
      answers.append(result)
    }
  }

  /// Refusals come in a row where it is not the users who are refused: then none is written down.
  private func refuse(_ user: TransferUser, _ reason: TransferRefusal, _ question: Int) {
    if self.question == .refusedAgain {
      progress.refused += 1
      return
    }
    let result = TransferResult(user.number, .refused(reason))
    // Of one whose row does not open Apple was not asked.
    if reason == .damaged || beliefs.contains(.refusals) { return answers.append(result) }
    refusedInARow += 1
    doubted.append((result, question))
  }

  /// Whether Apple has refused so many in a row that it is to be known whether it refuses everybody.
  var areRefusalsInDoubt: Bool { refusedInARow >= Self.mostRefusedInARow }

  private func isNew(_ answer: TransferResult.Answer, of user: TransferUser) -> Bool {
    guard case .identifier(let identifier) = answer else { return true }
    return identifiers.note(identifier, of: user.number)
  }

  /// What was refused before that question is the users' own: it can be written down. A refusal of a later question waits: an
  /// answer that took its time says nothing of what has become of everybody since.
  func release(askedBefore question: Int = .max) {
    answers += doubted.filter { $0.question < question }.map(\.result)
    doubted.removeAll { $0.question < question }
    uselessInARow = doubted.count { $0.result.answer == .refused(.uselessAnswer) }
    refusedInARow = doubted.count - uselessInARow
  }

  /// Many were refused one after the other, or everybody was asked about, and behind the last of whom Apple said something
  /// there are some who were refused. That may be everybody's from some moment on: so Apple is asked about somebody of whom it
  /// has said something before, and about nobody else meanwhile. Where it does not do so again, nothing is concluded.
  func settleDoubts() async {
    if doubted.isEmpty || beliefs.contains(.refusals) { return release() }
    await flush()
    await waiting.change { self.isFlushing }
    guard ending == nil else { return }
    do throws(AccountStoreError) {
      var failure: AppleTokenError?
      for user in try await knownUsers() {
        let question = questions + 1
        switch await answer(about: user) {
        case nil: return
        case .failure(let error): failure = error
        case .success(.refused): continue
        case .success(let answer):
          if !answer.isUseless(for: user) { return release(askedBefore: question) }
        }
      }
      stop(failure.map { .appleFails($0) } ?? .allRefused)
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
