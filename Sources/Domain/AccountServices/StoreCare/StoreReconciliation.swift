import AccountEvents
package import AccountStore
package import EventLoop
package import Kafka

/// Brings a store that was restored from a backup to what the outcomes on Kafka say: they are kept for ever, and name
/// accounts by the hash of that same store.
@Loop
package struct StoreReconciliation {
  /// How it went.
  package struct Report: Sendable {
    /// How many outcomes there are.
    package var outcomes = 0
    /// How many of them nobody can read.
    package var unreadable = 0
    /// Where the first of these stands.
    package var firstUnreadable: KafkaPosition?
    /// Whether one of them is of this store. Where none is, nothing is changed.
    package var isRecognized = false
    /// What was changed, or would be.
    package var reconciliation = Reconciliation()
  }

  private let store: any AccountStore
  private let open: @Loop () async throws -> TopicPages
  private let progress: @Sendable (StoreProgress) -> Void

  /// A reconciliation with what `open` reads: it is read twice, as far as is needed to find out whether it is of this
  /// store, and then to its end.
  package init(
    of store: any AccountStore, progress: @escaping @Sendable (StoreProgress) -> Void,
    with open: @escaping @Loop () async throws -> TopicPages
  ) { (self.store, self.open, self.progress) = (store, open, progress) }

  /// Does it; a rehearsal only says what would change. Throws errors of Kafka's and of the store's. Broken off it is begun
  /// anew: what is done is found done.
  package func run(isRehearsal: Bool) async throws -> Report {
    var looked = Report()
    try await read { page in
      let outcomes = looked.read(page)
      if outcomes.isEmpty { return true }
      looked.isRecognized = try await store.recognizes(outcomes)
      for outcome in outcomes where store.newest(of: outcome.account) == nil {
        if let key = outcome.account.key { looked.reconciliation.unknownKeys[key, default: 0] += 1 }
      }
      return !looked.isRecognized
    }
    guard looked.isRecognized else { return looked }
    var report = Report()
    report.isRecognized = true
    try await read { page in
      let outcomes = report.read(page)
      if !outcomes.isEmpty {
        report.reconciliation.add(try await store.reconcile(with: outcomes, isRehearsal: isRehearsal))
      }
      progress(StoreProgress(.reading, done: Int(clamping: page.done), total: Int(clamping: page.total)))
      return true
    }
    return report
  }

  /// Calls `body` with each page, for as long as it says so.
  private func read(_ body: @Loop (TopicPages.Page) async throws -> Bool) async throws {
    let pages = try await open()
    let result: Result<Void, any Error>
    do {
      while let page = try await pages.next() { if try await !body(page) { break } }
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await pages.close()
    try result.get()
  }
}

extension StoreReconciliation.Report {
  /// Reads outcomes, and notes those that cannot be read. One of a kind that only a later version knows is passed over.
  fileprivate mutating func read(_ page: TopicPages.Page) -> [RecordedOutcome] {
    var read: [RecordedOutcome] = []
    for record in page.records {
      outcomes += 1
      do throws(EventDecodingError) {
        if let outcome = RecordedOutcome(try AccountOutcome(decoding: record.value ?? [])) { read.append(outcome) }
      } catch {
        if error.code == .unknownType { continue }
        unreadable += 1
        firstUnreadable = firstUnreadable ?? record.position
      }
    }
    return read
  }
}
