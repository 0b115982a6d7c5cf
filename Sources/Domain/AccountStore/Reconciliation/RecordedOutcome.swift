package import AccountEvents

/// What stands on Kafka of something that was done: a store that was restored from a backup may not know of it.
package struct RecordedOutcome: Sendable, Hashable {
  /// What is over since.
  package enum Ending: Sendable, Hashable {
    /// What the store kept of the account was erased. `isFinal`: the Apple Account itself was gone.
    case erased(isFinal: Bool)
    /// The state of mail was forgotten. `isFinal`: for good, as the Apple Account itself was gone.
    case mailForgotten(isFinal: Bool)
    /// The state of mail became another one: which, the outcome does not say.
    case mailChanged
    /// The account's tokens were ended, those of all apps.
    case tokensEnded
  }

  /// The account.
  package let account: AccountHash
  /// Who did it.
  package let consumer: ConsumerName
  /// The event that it followed from.
  package let event: EventID
  /// When that happened.
  package let occurredAt: Timestamp
  /// What is over since; nil for an outcome that ends nothing in a store.
  package let ending: Ending?

  /// An outcome from its parts.
  package init(account: AccountHash, consumer: ConsumerName, event: EventID, at time: Timestamp, ending: Ending?) {
    (self.account, self.consumer, self.event, occurredAt) = (account, consumer, event, time)
    self.ending = ending
  }

  /// The same of the account under another hash.
  fileprivate func about(_ account: AccountHash) -> RecordedOutcome {
    RecordedOutcome(account: account, consumer: consumer, event: event, at: occurredAt, ending: ending)
  }
}

/// Outcomes with the hashes that stand for their accounts now.
struct CurrentOutcomes {
  private(set) var outcomes: [RecordedOutcome] = []
  /// How many name a key that the store does not have.
  private(set) var unknownKeys: [HashKeyID: Int] = [:]

  /// Throws while rows are moved: under which hash an account stands is not known by the hash alone then.
  init(_ recorded: [RecordedOutcome], _ keys: StoreKeys) throws(AccountStoreError) {
    guard !keys.state.isMoving else {
      throw AccountStoreError(
        .failed, "a rotation of its hashing key is under way: finish it first with `siwa store rotate-hash-key`")
    }
    outcomes.reserveCapacity(recorded.count)
    for outcome in recorded {
      if let newest = keys.hashing.newest(of: outcome.account) {
        outcomes.append(outcome.about(newest))
      } else if let key = outcome.account.key {
        unknownKeys[key, default: 0] += 1
      }
    }
  }
}

/// What a store was brought to that had been restored: whose accounts were changed, each once.
package struct Reconciliation: Sendable, Hashable {
  /// Accounts of which something was deleted that had been erased before.
  package var erased: Set<AccountHash> = []
  /// Accounts that count as erased again, whether anything of them was there or not.
  package var fenced: Set<AccountHash> = []
  /// Accounts whose state of mail was forgotten, because it is not the last one.
  package var mail: Set<AccountHash> = []
  /// Accounts whose tokens were ended.
  package var tokens: Set<AccountHash> = []
  /// How many outcomes were passed over, by the hashing key that they name and the store does not have: it was restored
  /// from a backup of before that key's time.
  package var unknownKeys: [HashKeyID: Int] = [:]

  /// Nothing changed.
  package init() {}

  /// Adds another.
  package mutating func add(_ other: Reconciliation) {
    erased.formUnion(other.erased)
    fenced.formUnion(other.fenced)
    mail.formUnion(other.mail)
    tokens.formUnion(other.tokens)
    unknownKeys.merge(other.unknownKeys, uniquingKeysWith: +)
  }

  /// What corrections change, of outcomes whose keys are known.
  init(_ corrections: [(account: RestoredAccount, correction: Correction)], unknownKeys: [HashKeyID: Int]) {
    self.unknownKeys = unknownKeys
    for (account, correction) in corrections {
      if correction.erasesUpTo != nil { erased.insert(account.hash) }
      if correction.fence != nil { fenced.insert(account.hash) }
      if correction.forgetsMail { mail.insert(account.hash) }
      if correction.endsTokensUpTo != nil { tokens.insert(account.hash) }
    }
  }
}
