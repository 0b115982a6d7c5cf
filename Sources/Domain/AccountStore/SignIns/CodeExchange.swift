package import AccountEvents
package import Cryptography

/// The exchange of a sign-in's authorization code, as the store notes it before Apple is asked: whatever is killed when, a code
/// is sent to Apple once. Nothing of it is secret or names a person.
package struct CodeExchange: Sendable, Hashable {
  /// Tells the request from all others: whoever repeats it names the same.
  package let request: SHA256Digest
  /// The digest of all that was asked for: under one name only the same may be asked for again.
  package let content: SHA256Digest
  /// The digest of the code.
  package let code: SHA256Digest
  /// Whose sign-in it is.
  package let account: AccountID
  /// The app that the person signed in to.
  package let client: ClientID
  /// When it was noted.
  package let begunAt: Timestamp

  /// An exchange from its parts.
  package init(
    request: SHA256Digest, content: SHA256Digest, code: SHA256Digest, account: AccountID, client: ClientID,
    begunAt: Timestamp
  ) {
    (self.request, self.content, self.code) = (request, content, code)
    (self.account, self.client, self.begunAt) = (account, client, begunAt)
  }

  /// How long the outcome of an exchange is kept: longer than the identity token of its request is believed, which holds
  /// for a day at Apple.
  static let memory = Duration.seconds(48 * 3600)

  /// What came of one.
  package enum Outcome: String, Sendable, Hashable, CaseIterable {
    /// The tokens are kept, of an account that had not signed in before, or not since it was erased.
    case new
    /// The tokens are kept, of an account that had.
    case known
    /// The authorization was over before its tokens became known, or they never did: none is kept. Or it is over since.
    case over
    /// Apple did not take the code, or its tokens are of somebody else.
    case refused

    /// Whether somebody was signed in.
    var isSignIn: Bool { self == .new || self == .known }
  }

  /// How an exchange ends of which nothing comes.
  package enum Ending: Sendable, Hashable {
    /// Apple did not take the code, or its tokens are of somebody else.
    case refused
    /// It was broken off, and whatever Apple granted is over, or known to nobody.
    case lost

    /// What is noted of it.
    var outcome: Outcome { self == .refused ? .refused : .over }
  }

  /// How an exchange stands that somebody asks for.
  package enum Standing: Sendable, Hashable {
    /// It was not known, and is noted now: Apple is to be asked.
    case begun
    /// It was noted before, and nothing came of it yet: Apple may have been asked.
    case unfinished
    /// It was made before. A sign-in that was ended since is `.over`.
    case finished(Outcome, at: Timestamp)
    /// Something else was asked for under the same name.
    case otherContent
    /// Another request has used the code.
    case codeUsed
  }

  /// Its state in a row while nothing has come of it.
  static let begun = "begun"

  /// How it stands by the row that is kept of it, or of its code.
  func standing(
    request: [UInt8], content: [UInt8], outcome: String, at time: Timestamp
  ) throws(AccountStoreError) -> Standing {
    guard request == self.request.bytes else { return .codeUsed }
    guard content == self.content.bytes else { return .otherContent }
    if outcome == Self.begun { return .unfinished }
    guard let outcome = Outcome(rawValue: outcome) else {
      throw AccountStoreError(.damaged, "the outcome of an exchange: not of the form in which it was written")
    }
    return .finished(outcome, at: time)
  }

  /// Whether the sign-in at `time` that came of it was ended since: by an erasure, with its app's authorization, or by a
  /// deletion that was asked for, be it not carried out yet.
  func isOver(
    at time: Timestamp, _ facts: AccountFacts, _ ended: EndedAuthorizations, _ deletion: Deletion?
  ) -> Bool {
    facts.isErased(at: time) || ended.isOver(client, at: time) || deletion.map { $0.requestedAt >= time } ?? false
  }
}

/// What became of a sign-in that was recorded.
package struct RecordedSignIn: Sendable, Hashable {
  /// When it counts as made: later than the deletions and revocations of ours that were there when it was begun, whatever
  /// Apple's clock says.
  package let at: Timestamp
  /// Whether the account had not signed in before, or not since it was erased.
  package let isNew: Bool
  /// The tokens that are not kept.
  package let over: [NewToken]
  /// Why the account was not joined with the one that the person had at another team, where it claims to be theirs: two
  /// accounts would have become one, which a person has to look at.
  package var conflict: TransferRefusal?

  /// What became of it.
  package init(at time: Timestamp, isNew: Bool, over: [NewToken]) { (at, self.isNew, self.over) = (time, isNew, over) }

  /// Apple tells whole seconds: what it ended within the second of a sign-in was ended before that.
  private static let untilEndOfSecond = Duration.milliseconds(999)

  /// When a sign-in counts as made whose exchange was begun at `begunAt`, and of which Apple says `time`: in seconds, by a
  /// clock of its own. It is later than a deletion that was asked for, and than every revocation of our own that was noted,
  /// before it was begun; and no later than a deletion that was asked for after that.
  static func time(
    _ time: Timestamp, begunAt: Timestamp, beside deletion: Deletion?, _ revocations: [Timestamp]
  ) -> Timestamp {
    let endings = [deletion?.requestedAt].compactMap(\.self) + revocations
    let last = endings.filter { $0 < begunAt }.max()
    let counted = last.map { max(time + untilEndOfSecond, $0 + .milliseconds(1)) } ?? time
    guard let deletion, deletion.requestedAt >= begunAt else { return counted }
    return min(counted, deletion.requestedAt)
  }

  /// The same as the outcome of an exchange.
  var outcome: CodeExchange.Outcome { !over.isEmpty ? .over : isNew ? .new : .known }

  /// What was recorded of these tokens before; nil where Apple's refusal was.
  init?(_ outcome: CodeExchange.Outcome, at time: Timestamp, of tokens: [NewToken]) {
    switch outcome {
    case .new: self.init(at: time, isNew: true, over: [])
    case .known: self.init(at: time, isNew: false, over: [])
    case .over: self.init(at: time, isNew: false, over: tokens)
    case .refused: return nil
    }
  }
}
