import AccountEvents
import AccountStore

/// How long a sign-in is taken to be under way of which nothing comes.
private let longestSignIn = Duration.seconds(120)
/// How far the clock that it was begun by may be ahead of ours. Beyond that it is not waited for until our clock has come
/// so far.
private let furthestAhead = Duration.seconds(600)

extension AccountStore {
  /// Whether a sign-in of the account is under way: Apple may have granted its token by now, and would end that with any
  /// other that is revoked.
  func isSignInUnderWay(of account: Account, at now: Timestamp) async throws(AccountStoreError) -> Bool {
    try await signInUnderWay(of: id(of: account), after: now - longestSignIn, until: now + furthestAhead) != nil
  }
}
