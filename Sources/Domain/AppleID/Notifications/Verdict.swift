package import AccountEvents

/// What the verifier makes of a body.
package enum Verdict: Sendable {
  /// Apple signed it for us.
  case verified(VerifiedNotification)
  /// Not Apple, not for us, or no notification: no, and never.
  case refused(Refusal)
  /// It names a key that is not in the set. Apple may have a new one: whoever keeps the keys finds out.
  case unknownKey(KeyID)
}
