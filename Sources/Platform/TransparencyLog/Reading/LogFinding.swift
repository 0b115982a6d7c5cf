/// The first place at which a log contradicts itself, its signatures or an older checkpoint.
package struct LogFinding: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of contradiction; the raw value appears in reports.
  package enum Kind: String, Sendable, CaseIterable {
    /// A file that the size of the log asks for is not there.
    case missing
    /// A file that has not the form of its kind, or too many bytes.
    case malformed
    /// The checkpoint is not signed by the log's key.
    case unsigned
    /// A signature under the name and the ID of a trusted key does not verify.
    case badSignature = "bad-signature"
    /// The checkpoint is one of another log.
    case wrongOrigin = "wrong-origin"
    /// Fewer witnesses have cosigned the checkpoint than the policy asks for.
    case notCosigned = "not-cosigned"
    /// The history of the log's keys contradicts itself.
    case badRotation = "bad-rotation"
    /// An entry is not the one that its hash in the tree is of.
    case wrongEntry = "wrong-entry"
    /// A bundle has fewer or more entries than the tree.
    case wrongCount = "wrong-count"
    /// A hash in a tile is not that of the entries or the tile below it.
    case wrongHash = "wrong-hash"
    /// Entries and tiles fit, but not the root of the checkpoint.
    case wrongRoot = "wrong-root"
    /// The log has fewer entries than it had.
    case shrunk
    /// The log has shown another tree of the same size.
    case splitView = "split-view"
    /// The log does not begin with the entries that it had.
    case rewritten
  }

  /// The kind of contradiction.
  package let kind: Kind
  /// The file, such as `tile/entries/000.p/7`.
  package let path: String
  /// The first entry concerned, counted from zero; nil if none in particular is.
  package let entry: UInt64?
  /// The expectation that does not hold.
  package let detail: String

  /// Something that does not fit.
  package init(_ kind: Kind, _ path: String, entry: UInt64? = nil, _ detail: String) {
    (self.kind, self.path, self.entry, self.detail) = (kind, path, entry, detail)
  }

  /// The finding that an error is in a file that was read. Rethrows what says nothing about the log.
  init(_ error: LogError, in path: String) throws(LogError) {
    let kind: Kind =
      switch error.code {
      case .malformed, .tooLarge: .malformed
      case .unsigned: .unsigned
      case .badSignature: .badSignature
      case .wrongOrigin: .wrongOrigin
      case .notCosigned: .notCosigned
      case .conflict: path == LogPath.keys ? .badRotation : .splitView
      case .unproven, .missing, .damaged, .absent, .locked, .full, .failed: throw error
      }
    self.init(kind, path, error.detail)
  }

  /// The kind, the place and the expectation that does not hold.
  package var description: String {
    "\(kind.rawValue): \(path)\(entry.map { ", entry \($0)" } ?? ""): \(detail)"
  }
}
