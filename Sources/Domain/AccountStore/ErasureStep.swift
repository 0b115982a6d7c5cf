package import AccountEvents

/// What one target of an erasure has done.
package struct ErasureStep: Sendable, Hashable {
  /// How far a target is.
  package enum State: String, Sendable, Hashable, CaseIterable {
    /// It was counted, and its erasure has begun.
    case begun
    /// It was erased, and looked for afterwards: nothing is there.
    case erased
    /// It is kept under a legal ground.
    case retained
    /// It has failed so far.
    case failed
    /// It was not brought to its end, and somebody has decided that it is not to be.
    case discarded

    /// Whether something is left to do.
    package var isOpen: Bool { self == .begun || self == .failed }
  }

  /// The detail of a step that was begun and that the target is at work on: it is waited for, and nothing has failed.
  package static let inProgress = "in-progress"

  /// The target's name, as the operator declared it.
  package let target: String
  /// How far it is.
  package let state: State
  /// How many rows or records were there before; nil where the target cannot count.
  package let before: Int?
  /// How many were erased.
  package let affected: Int?
  /// How many an independent query found afterwards.
  package let after: Int?
  /// What the target answered, the ground of a retention, or why it failed: no personal data.
  package let detail: String
  /// When.
  package let time: Timestamp

  /// A step from its parts.
  package init(
    target: String, state: State, before: Int?, affected: Int?, after: Int?, detail: String, time: Timestamp
  ) {
    (self.target, self.state, self.before, self.affected) = (target, state, before, affected)
    (self.after, self.detail, self.time) = (after, detail, time)
  }
}
