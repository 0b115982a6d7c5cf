import AccountEvents
import Cryptography

/// Somebody who has signed in to the shop, in one browser.
struct Visit {
  /// Where it stands.
  enum State: Equatable {
    /// Signed in.
    case open
    /// Asked for the deletion of the account, which siwa-accounts has under this id.
    case leaving(deletion: String)
    /// Signed out by siwa: the person uses their Apple Account here no more.
    case ended
    /// The shop knows nobody any more whose visit this could be. The deletion is the one that was asked for here.
    case gone(deletion: String?)
  }

  /// What can happen to it.
  enum Step {
    /// siwa-accounts has taken the request for a deletion.
    case deletionAsked(id: String)
    /// `sessions-ended`, for what happened at that time.
    case sessionsEnded(Timestamp)
    /// The customer is not in the shop's database any more.
    case customerErased
  }

  /// More lines of news are not kept.
  private static let mostNews = 40

  private(set) var state = State.open
  /// The account, as siwa-accounts calls it; it names nobody by itself.
  let account: String
  /// The row of the customer; numbers are never used again.
  let customer: Int64
  /// The digest of team and `sub`: what happened to whom is this visit's.
  let who: SHA256Digest
  /// When Apple says that the person signed in.
  let signedInAt: Timestamp
  /// What a form of this visit has to bring.
  let formToken: String
  /// What has happened to the account since, the newest last.
  private(set) var news: [ShopNews.Item] = []

  /// A visit that begins.
  init(
    account: String, customer: Int64, who: SHA256Digest, signedInAt: Timestamp
  ) throws(CryptographyError) {
    (self.account, self.customer, self.who, self.signedInAt) = (account, customer, who, signedInAt)
    formToken = try .secret()
  }

  /// The deletion that was asked for here.
  var deletion: String? {
    switch state {
    case .leaving(let deletion): deletion
    case .gone(let deletion): deletion
    case .open, .ended: nil
    }
  }

  /// Takes a step.
  mutating func take(_ step: Step) {
    switch (state, step) {
    case (.open, .deletionAsked(let id)): state = .leaving(deletion: id)
    // An end that happened before this sign-in is not this visit's. A credential that is found invalid ends with its sign-in.
    case (.open, .sessionsEnded(let time)) where time >= signedInAt: state = .ended
    case (.open, .customerErased), (.leaving, .customerErased), (.ended, .customerErased):
      state = .gone(deletion: deletion)
    case (.open, .sessionsEnded), (.leaving, _), (.ended, _), (.gone, _): break
    }
  }

  /// Notes what happened, where it is this visit's.
  mutating func hear(_ item: ShopNews.Item) {
    guard item.who == who else { return }
    if news.count >= Self.mostNews { news.removeFirst() }
    news.append(item)
    if let time = item.endsSessions { take(.sessionsEnded(time)) }
  }
}
