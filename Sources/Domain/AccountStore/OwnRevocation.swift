package import AccountEvents

/// An authorization that we have ended at Apple ourselves, or are about to. It outlives an erasure, as the `consent-revoked`
/// that follows from it may come after that.
package struct OwnRevocation: Sendable, Hashable {
  /// The app or service whose authorization it was.
  package let client: ClientID
  /// When what we revoked it for happened; of a token that nobody keeps, just before Apple is asked.
  package let time: Timestamp
  /// Whether no proof of it is waited for: Apple was seen to have ended it, which its answer to a revocation alone does not
  /// say, or nobody keeps its token.
  package let isProven: Bool

  /// A revocation from its parts.
  package init(of client: ClientID, at time: Timestamp, isProven: Bool) {
    (self.client, self.time, self.isProven) = (client, time, isProven)
  }
}
