package import EventLoop
package import Telemetry
package import TransparencyLog

/// Brings the index of a log to the log's size: after a crash, or where it is begun anew.
@Loop
package struct IndexCatchUp {
  /// How many entries are taken at once.
  private static let page: UInt64 = 8192
  /// How often the log says how far it is.
  private static let pause = Duration.seconds(10)

  private let journal: JournalThread
  private let source: any LogSource
  private let logger: Logger

  /// The work to be done on an open journal, whose log is read from `source`.
  package init(_ journal: JournalThread, reading source: any LogSource, logger: Logger) {
    (self.journal, self.source, self.logger) = (journal, source, logger)
  }

  /// Takes into the index what it lacks. One that is another log's, or ahead of this one, is begun anew.
  package func run() async throws {
    let (indexed, head) = try await journal.run { ($0.indexed, $0.head) }
    let view = LogView(source, at: head)
    var next = indexed.size
    if try await !isOf(view, indexed) {
      logger.warning(
        "the audit log's index does not belong to it: it is made anew",
        ["log.size": .integer(head.size), "index.size": .integer(indexed.size)])
      try await journal.run { try $0.clearIndex() }
      next = 0
    }
    let start = (size: next, time: MonotonicTime.now)
    var nextWord = start.time + Self.pause
    while next < head.size {
      var page: [[UInt8]] = []
      try await view.entries(in: next..<min(next + Self.page, head.size)) { _, entry in
        page.append(unsafe entry.withUnsafeBytes { unsafe Array($0) })
      }
      try await journal.run { [page, next] in try $0.index(page, from: next) }
      next += UInt64(page.count)
      try Task.checkCancellation()
      if nextWord <= .now {
        nextWord = .now + Self.pause
        logger.info(
          "the audit log's index is brought up to the log",
          ["index.size": .integer(next), "log.size": .integer(head.size)])
      }
    }
    if next > start.size {
      logger.info(
        "the audit log's index has caught up",
        ["index.added": .integer(next - start.size), "log.size": .integer(head.size)])
    }
  }

  /// Whether what the index covers is the beginning of this log.
  private func isOf(_ view: LogView, _ indexed: AuditIndex.Extent) async throws -> Bool {
    if indexed.size == 0 { return true }
    guard indexed.size <= view.head.size else { return false }
    return try await view.inclusionProof(of: indexed.size - 1).leaf.bytes == indexed.lastLeaf
  }
}
