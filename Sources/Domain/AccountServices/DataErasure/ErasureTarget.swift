package import EventLoop

/// A place where a person's data is, or the reason why some of it stays.
///
/// Whatever a target does, it can be told again: a process may be killed before it has written down what was done.
@Loop
package protocol ErasureTarget: AnyObject, Sendable {
  /// How much there is of the account now; nil where the target cannot count. Changes nothing.
  func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int?

  /// Erases the account, and looks for it afterwards. Throws `.remaining` where something is found then. The same order is
  /// given again where the target is still at work.
  func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult

  /// Asks whether the target could do its work now, as far as can be known without doing it.
  func check() async throws(ErasureFailure)
}

/// What a target has done.
package struct ErasureResult: Sendable, Hashable {
  /// Whether nothing is there any more, or something stays under a legal ground, or the target is still at work.
  package enum State: Sendable, Hashable {
    /// Nothing is there any more.
    case erased
    /// It stays, for the ground that the detail names.
    case retained
    /// The target has taken the order and is not done; when it wants to be asked again, if it has said so.
    case inProgress(retryAfter: Duration?)
  }

  /// What became of the data.
  package let state: State
  /// How many rows or records were erased; nil where the target cannot count.
  package let affected: Int?
  /// How many an independent query found afterwards; nil where there is none.
  package let found: Int?
  /// The target's answer or the ground: no personal data.
  package let detail: String

  /// A result from its parts.
  package init(_ state: State, affected: Int?, found: Int?, detail: String) {
    (self.state, self.affected, self.found, self.detail) = (state, affected, found, detail)
  }
}
