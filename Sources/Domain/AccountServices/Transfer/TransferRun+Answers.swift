import AccountStore
import EventLoop

// What becomes of Apple's answers.
extension TransferRun {
  /// Takes an answer for good, or has it wait until it is known what it is worth.
  func judge(_ result: TransferResult, of user: TransferUser) {
    if case .refused(let reason) = result.answer {
      refuse(user, reason)
    } else if result.answer.isUseless(for: user) || !isNew(result.answer, of: user) {
      useless += 1
      doubted.append(TransferResult(user.number, .refused(.uselessAnswer)))
      if useless >= Self.mostUseless { stop(.useless) }
    } else {
      refusedInARow = 0
      release()
      answers.append(result)
    }
  }

  /// Refusals come in a row where it is not the users who are refused: then none is written down.
  private func refuse(_ user: TransferUser, _ reason: TransferRefusal) {
    refusedInARow += 1
    doubted.append(TransferResult(user.number, .refused(reason)))
    if believesAll {
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
      case .done: progress.done += 1
      case .refused: progress.refused += 1
      case .waiting: break
      case .conflict:
        // The store knows of everybody who came to that account.
        progress.conflicts += 1
        useless += 1
        if useless >= Self.mostUseless, !believesAll { stop(.useless) }
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
