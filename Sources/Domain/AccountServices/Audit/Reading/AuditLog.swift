package import AccountEvents
import Glibc
package import TransparencyLog

/// The audit log at a checkpoint that is believed: what is read of it is proven to stand in it.
package struct AuditLog: Sendable {
  /// The checkpoint.
  package let checkpoint: VerifiedCheckpoint
  /// Trust in the log, with the keys that followed its first one.
  package let trust: LogTrust
  /// The log at that checkpoint.
  package let view: LogView

  /// The number of entries.
  package var size: UInt64 { checkpoint.checkpoint.size }

  /// Opens a log at its newest checkpoint. Throws a `LogFinding` where that is not to be believed.
  package static func open(_ source: any LogSource, trusting trust: LogTrust) async throws -> AuditLog {
    let (checkpoint, trust) = try await LogView.open(source, trusting: trust)
    return AuditLog(checkpoint, trust, source)
  }

  /// A log that was verified as a whole.
  package init(_ log: VerifiedLog, in source: any LogSource) {
    self.init(log.checkpoint, log.trust, source)
  }

  private init(_ checkpoint: VerifiedCheckpoint, _ trust: LogTrust, _ source: any LogSource) {
    (self.checkpoint, self.trust) = (checkpoint, trust)
    view = LogView(source, at: checkpoint.checkpoint.head)
  }

  /// An entry that this version cannot read.
  package struct UnknownEntry: Error, CustomStringConvertible {
    /// The place of the entry.
    package let index: UInt64
    /// Why it cannot be read.
    package let cause: AuditEntryError

    /// The place and the cause.
    package var description: String { "entry \(index) cannot be read, perhaps by this version: \(cause)" }
  }

  /// Gives all entries to `body`, in their order, each once it is proven to stand there.
  ///
  /// Throws `UnknownEntry` for one that this version cannot read: who judges a log has to know all that it says.
  package func entries(
    progress: (_ done: UInt64, _ size: UInt64) -> Void, _ body: (_ index: UInt64, _ entry: AuditEntry) throws -> Void
  ) async throws {
    try await view.entries(in: 0..<size) { index, bytes in
      try body(index, try Self.entry(at: index, bytes))
      if index & 0xff == 0xff { progress(index + 1, size) }
    }
  }

  /// Gives the entries of these places, which ascend, to `body`, as the other one does.
  package func entries(at places: [UInt64], _ body: (_ index: UInt64, _ entry: AuditEntry) throws -> Void) async throws
  {
    var rest = places[...]
    while let first = rest.first {
      // A bundle is read once for all of them that stand in it.
      let bundle = rest.prefix { $0 / 256 == first / 256 }
      rest = rest.dropFirst(bundle.count)
      let wanted = Set(bundle)
      try await view.entries(in: first..<(bundle.last ?? first) + 1) { index, bytes in
        if wanted.contains(index) { try body(index, try Self.entry(at: index, bytes)) }
      }
    }
  }

  /// All entries about an event, in their order: obligations, effects and decisions.
  package func entries(
    of event: EventID, progress: (_ done: UInt64, _ size: UInt64) -> Void
  ) async throws -> [(index: UInt64, entry: AuditEntry)] {
    // Canonical JSON has one way to write it; most entries need not be read to know that it is not there.
    let mark = Array(#""id":"\#(event.text)""#.utf8)
    var found: [(index: UInt64, entry: AuditEntry)] = []
    try await view.entries(in: 0..<size) { index, bytes in
      if index & 0xff == 0xff { progress(index + 1, size) }
      guard unsafe bytes.withUnsafeBytes({ unsafe $0.contains(mark) }) else { return }
      let entry = try Self.entry(at: index, bytes)
      if entry.event == event { found.append((index, entry)) }
    }
    return found
  }

  /// Reads an entry. Throws `UnknownEntry` for one that this version cannot read.
  package static func entry(at index: UInt64, _ bytes: RawSpan) throws(UnknownEntry) -> AuditEntry {
    let bytes = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    do throws(AuditEntryError) { return try AuditEntry(decoding: bytes) } catch {
      throw UnknownEntry(index: index, cause: error)
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Whether these bytes, at least one, stand somewhere in it.
  fileprivate func contains(_ pattern: [UInt8]) -> Bool {
    var start = 0
    while count - start >= pattern.count, let base = baseAddress {
      guard let found = unsafe memchr(base + start, CInt(pattern[0]), count - start) else { return false }
      start = unsafe base.distance(to: UnsafeRawPointer(found))
      guard count - start >= pattern.count else { return false }
      if unsafe memcmp(base + start, pattern, pattern.count) == 0 { return true }
      start += 1
    }
    return false
  }
}
