package import AccountEvents

/// What a person has decided about a conflict: a note for the application's own database, which changes no account here. It is
/// sealed with the user, and gone with them or with the plan.
package struct TransferDecision: Sendable, Hashable {
  /// Whose the account is.
  package enum Choice: String, Sendable, Hashable, CaseIterable {
    /// The key's that came to it first.
    case keepOld = "keep-old"
    /// That of the key that is in conflict.
    case keepNew = "keep-new"
    /// The key in conflict gets an account of its own, which it has to be given anew; the other one stays as it is.
    case separate
  }

  /// Whose the account is.
  package let choice: Choice
  /// Who decided it.
  package let person: String
  /// Why.
  package let reason: String
  /// When.
  package let time: Timestamp

  /// A decision from its parts.
  package init(_ choice: Choice, by person: String, because reason: String, at time: Timestamp) {
    (self.choice, self.person, self.reason, self.time) = (choice, person, reason, time)
  }
}
