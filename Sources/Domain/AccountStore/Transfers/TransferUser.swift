package import AccountEvents

/// A user of a transfer.
package struct TransferUser: Sendable, Hashable {
  /// How it stands with a user. The raw value is a row's.
  package enum State: String, Sendable, Hashable, CaseIterable {
    /// Apple is to be asked.
    case waiting
    /// Apple has answered: sending, there is a transfer identifier; receiving, there is the subject.
    case done
    /// Apple has refused: `reason` says why.
    case refused
    /// Receiving: two identifiers came to one account, or one identifier to two. A person decides.
    case conflict
  }

  /// The place in the order in which users were added, from 1 on.
  package let number: Int64
  /// What the operator knows the user by: never a subject, never an address.
  package let key: String
  /// Who it is at our team; nil on the receiving side until Apple has said so.
  package var subject: AppleSubject?
  /// The transfer identifier; nil on the sending side until Apple has given one.
  package var transferSubject: TransferSubject?
  /// The address that our team has; nil where there is none, or on the sending side.
  package var address: RelayAddress?
  /// Whether the address is one of Apple's private relay.
  package var isPrivate = false
  /// How it stands.
  package var state: State
  /// Of a refused user or a conflict: why.
  package var reason: TransferRefusal?
  /// Receiving: whether the person has signed in since, and was recognized by the identity token.
  package var hasSignedIn = false
  /// Of a conflict: what a person has decided about it; nil while nobody has.
  package var decision: TransferDecision?

  /// A user from its parts.
  package init(
    number: Int64, key: String, subject: AppleSubject? = nil, transferSubject: TransferSubject? = nil, state: State
  ) {
    (self.number, self.key, self.subject, self.transferSubject) = (number, key, subject, transferSubject)
    self.state = state
  }
}

/// Why nothing comes of a user. The raw value is a row's, and stands in reports.
package enum TransferRefusal: String, Sendable, Hashable, CaseIterable {
  /// Apple answers `invalid_request`: the person has withdrawn consent, or never was a user of the app. Or the account that
  /// Apple names was erased, and the person has not signed in since.
  case consentWithdrawn = "consent-withdrawn"
  /// Apple's answer is of no use: the identifier is the subject itself, or what it gave for somebody else.
  case uselessAnswer = "useless-answer"
  /// Another user of the plan came to the same account.
  case sameAccount = "same-account"
  /// The account had been transferred as somebody else.
  case otherAccount = "other-account"
  /// What is kept of the user does not open.
  case damaged
}

/// A user who is to be added to a plan.
package struct NewTransferUser: Sendable, Hashable {
  /// What the operator knows the user by: 1 to 255 bytes of UTF-8 without control characters.
  package let key: String
  /// Sending: who it is at our team. Nil on the receiving side.
  package let subject: AppleSubject?
  /// Receiving: the transfer identifier. Nil on the sending side.
  package let transferSubject: TransferSubject?

  /// A user of the sending side.
  package init(key: String, subject: AppleSubject) {
    (self.key, self.subject, transferSubject) = (key, subject, nil)
  }

  /// A user of the receiving side.
  package init(key: String, transferSubject: TransferSubject) {
    (self.key, subject, self.transferSubject) = (key, nil, transferSubject)
  }
}

/// What Apple said of one user.
package struct TransferResult: Sendable, Hashable {
  /// The answer.
  package enum Answer: Sendable, Hashable {
    /// Sending: the transfer identifier.
    case identifier(TransferSubject)
    /// Receiving: who it is at our team, and the address there, if there is one.
    case account(AppleSubject, address: RelayAddress?, isPrivate: Bool)
    /// Nothing comes of it.
    case refused(TransferRefusal)
  }

  /// The user's number.
  package let number: Int64
  /// What Apple said.
  package let answer: Answer

  /// A result from its parts.
  package init(_ number: Int64, _ answer: Answer) { (self.number, self.answer) = (number, answer) }
}

/// How far a plan is.
package struct TransferCensus: Sendable, Hashable {
  /// Users of whom Apple is to be asked, and of whom it has answered.
  package var waiting: Int64 = 0, done: Int64 = 0
  /// Users of whom nothing comes, by the reason.
  package var refused: [TransferRefusal: Int64] = [:]
  /// Users whose accounts a person has to look at, by the reason.
  package var conflicts: [TransferRefusal: Int64] = [:]
  /// Receiving: users who have signed in.
  package var signedIn: Int64 = 0

  /// Nobody.
  package init() {}

  /// Adds those in a state.
  mutating func add(
    _ state: TransferUser.State, _ count: Int64, signedIn: Int64, _ reasons: [TransferRefusal: Int64]
  ) {
    let reasons = reasons.filter { $0.value > 0 }
    switch state {
    case .waiting: waiting += count
    case .done: done += count
    case .refused: refused.merge(reasons, uniquingKeysWith: +)
    case .conflict: conflicts.merge(reasons, uniquingKeysWith: +)
    }
    self.signedIn += signedIn
  }

  /// All users.
  package var users: Int64 {
    waiting + done + refused.values.reduce(0, +) + conflicts.values.reduce(0, +)
  }
}
