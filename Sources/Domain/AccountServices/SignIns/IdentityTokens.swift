import AccountEvents
import AppleID
import EventLoop

/// Judges identity tokens with Apple's keys of the moment, and has a key looked up that is not known.
@Loop
final class IdentityTokens {
  private let verifier: IdentityTokenVerifier
  private let keys: AppleKeys
  private let now: @Sendable () -> Timestamp

  /// Judges by the system's clock, which is `now`.
  init(_ verifier: IdentityTokenVerifier, _ keys: AppleKeys, now: @escaping @Sendable () -> Timestamp) {
    (self.verifier, self.keys, self.now) = (verifier, keys, now)
  }

  /// What came of it.
  enum Judgement {
    case verified(VerifiedIdentityToken)
    case refused(IdentityTokenRefusal)
    /// Nobody can say now: Apple's keys cannot be had.
    case undecided

    /// Why it is not believed, where it is not: nothing of the token.
    var cause: String {
      switch self {
      case .verified: "none"
      case .refused(let refusal): refusal.rawValue
      case .undecided: "signing-keys-missing"
      }
    }
  }

  /// Judges a token, and waits for Apple's keys where that may help.
  func judge(_ token: UnverifiedIdentityToken, of signIn: ExpectedSignIn) async -> Judgement {
    switch verifier.verify(token, of: signIn, at: now(), keys: keys.current) {
    case .verified(let verified): return .verified(verified)
    case .refused(let refusal): return .refused(refusal)
    case .unknownKey(let id):
      switch await keys.lookUp(id) {
      case .unavailable: return .undecided
      case .absent: return settled(token, of: signIn, with: keys.current)
      case .found(let set): return settled(token, of: signIn, with: set)
      }
    }
  }

  private func settled(
    _ token: UnverifiedIdentityToken, of signIn: ExpectedSignIn, with set: AppleKeySet
  ) -> Judgement {
    switch verifier.verify(token, of: signIn, at: now(), keys: set, wasLookedUp: true) {
    case .verified(let verified): .verified(verified)
    case .refused(let refusal): .refused(refusal)
    case .unknownKey: .refused(.unknownKey)
    }
  }
}
