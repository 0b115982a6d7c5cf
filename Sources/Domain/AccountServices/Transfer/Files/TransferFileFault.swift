package import EventLoop

/// Why a file of a transfer is not written, or not believed: nothing of what it holds.
package struct TransferFileFault: Error, Sendable, CustomStringConvertible {
  /// The file.
  package let path: String
  /// The reason, for an operator.
  package let reason: String
  /// The path and the reason.
  package var description: String { "\(path): \(reason)" }

  /// A reason of ours.
  package init(_ path: String, _ reason: String) { (self.path, self.reason) = (path, reason) }
  /// The operating system fails.
  package init(_ path: String, _ error: SystemError) { self.init(path, "\(error)") }
}
