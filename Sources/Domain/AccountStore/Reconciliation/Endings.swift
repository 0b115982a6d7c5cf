import AccountEvents

/// All that outcomes say is over of one account: of each kind the last is enough.
struct Endings {
  private(set) var erased: Timestamp?
  private(set) var erasedForGood: Timestamp?
  private(set) var mailForgotten: Timestamp?
  private(set) var mailForgottenForGood: Timestamp?
  private(set) var mailChanged: Timestamp?
  private(set) var tokensEnded: Timestamp?

  /// The endings of each account that outcomes speak of.
  static func gather(_ outcomes: [RecordedOutcome]) -> [AccountHash: Endings] {
    var gathered: [AccountHash: Endings] = [:]
    for outcome in outcomes {
      if let ending = outcome.ending { gathered[outcome.account, default: Endings()].add(ending, outcome.occurredAt) }
    }
    return gathered
  }

  /// Those of the accounts that outcomes contradict, and what has to change of each.
  static func corrections(
    of accounts: [RestoredAccount], by endings: [AccountHash: Endings]
  ) -> [(account: RestoredAccount, correction: Correction)] {
    accounts.compactMap { account in
      guard let endings = endings[account.hash] else { return nil }
      let correction = Correction(of: account, by: endings)
      return correction.isNothing ? nil : (account, correction)
    }
  }

  private mutating func add(_ ending: RecordedOutcome.Ending, _ time: Timestamp) {
    func later(_ known: Timestamp?) -> Timestamp { known.map { max($0, time) } ?? time }
    switch ending {
    case .erased(isFinal: false): erased = later(erased)
    case .erased(isFinal: true): erasedForGood = later(erasedForGood)
    case .mailForgotten(isFinal: false): mailForgotten = later(mailForgotten)
    case .mailForgotten(isFinal: true): mailForgottenForGood = later(mailForgottenForGood)
    case .mailChanged: mailChanged = later(mailChanged)
    case .tokensEnded: tokensEnded = later(tokensEnded)
    }
  }
}

/// An account as a store has it that outcomes may contradict.
struct RestoredAccount {
  let hash: AccountHash
  /// Its row; nil where there is none.
  var row: SealedAccount?
  /// Its sign-ins and erasures.
  var facts: AccountFacts
  /// Since when its state of mail is as it is.
  var mailSince: Timestamp?
  /// When its oldest token was issued.
  var oldestToken: Timestamp?
  /// Until when the tokens of all apps were ended.
  var tokensEndedAt: Timestamp?
}

/// What has to change of an account, so that it is what outcomes say. What is younger than they are stays.
struct Correction: Equatable {
  /// The end of an erasure.
  enum End: Equatable {
    /// All of it.
    case all
    /// What there was until then.
    case upTo(Timestamp)

    init(_ time: Timestamp?) { self = time.map { .upTo($0) } ?? .all }
  }

  /// The fence that is to stand; nil where it does.
  var fence: ErasureFence?
  /// What is to be deleted; nil where nothing is.
  var erasesUpTo: End?
  /// Whether the state of mail is to be forgotten.
  var forgetsMail = false
  /// Until when tokens are to be ended; nil where they are.
  var endsTokensUpTo: Timestamp?

  /// Whether all is as it is to be.
  var isNothing: Bool { fence == nil && erasesUpTo == nil && !forgetsMail && endsTokensUpTo == nil }

  /// The one judgement, whatever the database.
  init(of account: RestoredAccount, by endings: Endings) {
    let facts = account.facts
    let signedInAt = facts.lastSignIn
    func end(_ time: Timestamp, isFinal: Bool) -> Timestamp? {
      ErasureFence(at: time, isFinal: isFinal).end(signedInAt: signedInAt)
    }
    let erasures = [
      endings.erased.map { ErasureFence(at: $0, isFinal: false) },
      endings.erasedForGood.map { ErasureFence(at: $0, isFinal: true) },
    ].compactMap(\.self)
    let fences =
      erasures + [endings.mailForgottenForGood.map { ErasureFence(at: $0, isFinal: true) }].compactMap(\.self)
    let merged = fences.reduce(facts.erasure) { $0?.merged(with: $1, signedInAt: signedInAt) ?? $1 }
    // Where the person has signed in since, a fence that stands may say that it is final, and is not.
    func meaning(_ fence: ErasureFence?) -> [Timestamp?]? { fence.map { [$0.at, $0.end(signedInAt: signedInAt)] } }
    if meaning(merged) != meaning(facts.erasure) { fence = merged }

    func isOver(_ time: Timestamp?, by end: Timestamp?) -> Bool {
      guard let time else { return false }
      return end.map { time <= $0 } ?? true
    }
    let mailEnds =
      [
        endings.mailForgotten.map { end($0, isFinal: false) },
        endings.mailForgottenForGood.map { end($0, isFinal: true) },
      ]
      .compactMap(\.self)
    forgetsMail =
      mailEnds.contains { isOver(account.mailSince, by: $0) }
      || endings.mailChanged.flatMap { changed in account.mailSince.map { $0 < changed } } ?? false
    if facts.key != nil, let first = erasures.first {
      let erasure = erasures.dropFirst().reduce(first) { $0.merged(with: $1, signedInAt: signedInAt) }
      let end = erasure.end(signedInAt: signedInAt)
      // Mail that is forgotten keeps no row.
      let times = [facts.signedInAt, forgetsMail ? nil : account.mailSince, account.oldestToken].compactMap(\.self)
      if times.isEmpty || times.contains(where: { isOver($0, by: end) }) { erasesUpTo = End(end) }
    }
    if let ended = endings.tokensEnded,
      isOver(account.oldestToken, by: ended) || account.tokensEndedAt.map({ $0 < ended }) ?? true
    {
      endsTokensUpTo = ended
    }
  }
}
