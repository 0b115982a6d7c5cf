package import AccountEvents

/// What the store knows of mail to an account.
package enum RelayKnowledge: Sendable, Hashable {
  /// Nothing was ever said.
  case unknown
  /// As Apple said last.
  case known(RelayState)
  /// The account was erased.
  case erased(since: Timestamp)
}
