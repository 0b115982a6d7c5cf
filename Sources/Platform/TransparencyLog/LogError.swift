/// Why something of a log cannot be read, written or believed.
package struct LogError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of failure; the raw value is a metric label and a log key.
  package enum Code: String, Sendable, CaseIterable {
    /// Text or bytes that do not have the form that their specification asks for.
    case malformed
    /// More bytes than a resource of this kind can have.
    case tooLarge = "too-large"
    /// No signature by a key that is trusted for this.
    case unsigned
    /// A signature under the name and the ID of a trusted key that does not verify.
    case badSignature = "bad-signature"
    /// A checkpoint of another log.
    case wrongOrigin = "wrong-origin"
    /// Fewer cosignatures than the policy asks for.
    case notCosigned = "not-cosigned"
    /// A proof that does not lead to the root.
    case unproven
    /// A file that has to be there and is not, or an entry beyond the end of the log.
    case missing
    /// A file whose bytes do not fit the checkpoint.
    case damaged
    /// No log was begun in this directory.
    case absent
    /// Another process writes to this log.
    case locked
    /// No room on the disk.
    case full
    /// A checkpoint that contradicts another one, or that the writer did not announce.
    case conflict
    /// The operating system or the network failed.
    case failed
  }

  /// The kind of failure.
  package let code: Code
  /// The file in the log that it is about, such as `tile/0/000`; empty where it is about none.
  package let path: String
  /// The reason, in our words: nothing of what was read stands in it.
  package let detail: String

  /// A failure of that kind.
  package init(_ code: Code, _ path: String, _ detail: String) {
    (self.code, self.path, self.detail) = (code, path, detail)
  }

  /// A text or bytes that are not of the form that they have to be of.
  static func malformed(_ detail: String) -> LogError { LogError(.malformed, "", detail) }

  /// The same failure, said of a file.
  func at(_ path: String) -> LogError { LogError(code, path, detail) }

  /// The kind of failure, the file and the reason.
  package var description: String {
    "\(code.rawValue): \(path.isEmpty ? "" : "\(path): ")\(detail)"
  }
}
