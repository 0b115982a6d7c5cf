package import AccountEvents

/// What the store knows of an account that an application asks for.
package enum AccountKnowledge: Sendable, Hashable {
  /// Nothing.
  case unknown
  /// It was erased, and the person has not signed in since.
  case erased(since: Timestamp)
  /// It is there.
  case known(AccountProfile)
}

/// An account that is there.
package struct AccountProfile: Sendable, Hashable {
  /// A sign-in whose refresh token is held, and is not known to be invalid.
  package struct SignIn: Sendable, Hashable {
    /// The app that the person signed in to.
    package let client: ClientID
    /// When they did last.
    package let time: Timestamp
    /// When Apple last said that a refresh token of theirs for the app is good; nil where it was not asked yet.
    package var validatedAt: Timestamp?
  }

  /// Who it is.
  package let account: Account
  /// When the person signed in last; nil where only events have told of them.
  package let signedInAt: Timestamp?
  /// Of each app whose refresh token is held the last sign-in, by the app's name.
  package let signIns: [SignIn]
  /// The apps whose authorizations have ended at some time; nil is all of the team's.
  package let ended: Set<ClientID>?
  /// What is known of mail to it.
  package let relay: RelayKnowledge
  /// How it came from another team; nil where it did not.
  package let origin: AccountOrigin?
}

/// What a database has of an account that an application asks for.
struct ProfileFacts {
  /// The row, where there is one.
  var row: SealedAccount?
  /// The state of mail, and what erasures have left.
  var relay = RelayFacts(relay: nil, account: AccountFacts())
  /// The last sign-in of each app whose refresh token is held and not known to be invalid, in any order.
  var signIns: [AccountProfile.SignIn] = []
  /// The apps whose authorizations have ended, or a token of which is invalid, by name; empty for all.
  var ended: Set<String> = []
  /// How it came from another team.
  var origin: AccountOrigin?

  /// Takes note of a refresh token: of each app the last sign-in counts, and the last validation.
  mutating func note(_ signIn: AccountProfile.SignIn) {
    guard let known = signIns.firstIndex(where: { $0.client == signIn.client }) else { return signIns.append(signIn) }
    let last = signIns[known]
    signIns[known] = AccountProfile.SignIn(
      client: last.client, time: max(last.time, signIn.time),
      validatedAt: [last.validatedAt, signIn.validatedAt].compactMap(\.self).max())
  }

  /// What that comes to.
  func knowledge(of hash: AccountHash, with keys: StoreKeys) throws(AccountStoreError) -> AccountKnowledge {
    guard let row else { return relay.account.erasure.map { .erased(since: $0.at) } ?? .unknown }
    let (cipher, account) = try row.open(with: keys)
    return .known(
      AccountProfile(
        account: account, signedInAt: relay.account.signedInAt,
        signIns: signIns.sorted { $0.client.text < $1.client.text },
        ended: ended.contains(EndedAuthorizations.everyApp) ? nil : Set(ended.compactMap { ClientID($0) }),
        relay: try relay.knowledge(of: hash) { cipher }, origin: origin))
  }
}
