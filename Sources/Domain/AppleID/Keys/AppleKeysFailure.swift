/// Why there is no new set, or why it could not be kept or read back.
package struct AppleKeysFailure: Error, Sendable, CustomStringConvertible {
  /// The closed list of reasons: metric labels and log keys.
  package enum Reason: String, Sendable, CaseIterable {
    /// No whole answer came: the name, the connection, TLS, or the certificate.
    case unreachable
    /// The answer took too long.
    case deadline
    /// The answer was larger than a set can be.
    case tooLarge = "too-large"
    /// Apple answered with another status than 200.
    case status
    /// The answer is no set that can be believed.
    case unfitSet = "unfit-set"
    /// The file that keeps the set is there, but cannot be read or not be believed.
    case cacheUnusable = "cache-unusable"
    /// The set could not be written into its file: a restart while Apple is down would find an older one, or none.
    case cacheUnwritable = "cache-unwritable"
  }

  /// Which reason it is.
  package let reason: Reason
  /// The particulars, for an operator; nothing of the answer itself.
  package let detail: String

  /// A failure of a source of keys.
  package init(_ reason: Reason, _ detail: String) { (self.reason, self.detail) = (reason, detail) }

  /// The reason and the particulars.
  package var description: String { "\(reason.rawValue): \(detail)" }
}
