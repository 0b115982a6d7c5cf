import AccountEvents

/// What must come of an account's events, worked out by rules of the tests' own: from the events in the order in which
/// they stand on the topic, and from whether the account has a token and no sign-in beside the first.
struct ObligationModel {
  /// What must stand on the topic of outcomes, by its id.
  private(set) var outcomes: Set<String> = []
  /// Pairs of which one must stand there, and not both. Where an account ends erased, it depends on who is first whether
  /// an e-mail event of its counted before.
  private(set) var alternatives: [[String]] = []
  /// Whether Apple was asked to revoke the token.
  private(set) var isRevoked = false
  /// Whether anything has asked for the end of the tokens.
  private(set) var isOver = false
  /// What a mailer is told.
  private(set) var mail = Mail.unknown

  /// What is known of mail to the account.
  enum Mail: Equatable {
    case unknown, erased
    case known(RelayState.Status, RelayAddress, since: Timestamp)
  }

  private typealias Moment = (time: Timestamp, rank: Int)
  private var hasToken: Bool

  init(_ events: [AccountEvent], hasToken: Bool) {
    self.hasToken = hasToken
    revoke(events)
    erase(events)
    relay(events)
  }

  /// The deletion of an Apple Account covers what the app was asked for, and that what a withdrawn consent does.
  private mutating func revoke(_ events: [AccountEvent]) {
    var applied: [(severity: Int, time: Timestamp)] = []
    for event in events {
      let severity: Int
      switch event.kind {
      case .emailEnabled, .emailDisabled, .accountTransferred: continue
      case .consentRevoked, .credentialInvalid: severity = 1
      case .accountDeletionRequested: severity = 2
      case .accountDelete: severity = 3
      }
      if applied.contains(where: { $0.severity >= severity && $0.time >= event.occurredAt }) {
        expect(event, "no-effect.token-revoker")
        continue
      }
      applied.append((severity, event.occurredAt))
      isOver = true
      // The echo of our own revocation: all was said before.
      if severity == 1, isRevoked {
        expect(event, "no-effect.token-revoker")
        continue
      }
      if severity == 2, hasToken { isRevoked = true }
      expect(event, hasToken ? "tokens-revoked" : "no-token")
      expect(event, "sessions-ended")
      hasToken = false
    }
  }

  private mutating func erase(_ events: [AccountEvent]) {
    var consents: [Moment] = []
    var deletions: [Moment] = []
    for event in events {
      let isConsent: Bool
      var moment = (time: event.occurredAt, rank: 0)
      switch event.kind {
      case .emailEnabled, .emailDisabled, .accountTransferred: continue
      case .consentRevoked, .credentialInvalid: isConsent = true
      case .accountDeletionRequested: isConsent = false
      case .accountDelete: (isConsent, moment.rank) = (false, 1)
      }
      if (isConsent ? consents + deletions : deletions).contains(where: { $0 >= moment }) {
        expect(event, "no-effect.data-eraser")
        continue
      }
      if isConsent { consents.append(moment) } else { deletions.append(moment) }
      expect(event, "account-erased")
    }
  }

  /// What happened last counts, of one moment what takes more away; a deletion ends it for good.
  private mutating func relay(_ events: [AccountEvent]) {
    var deletions: [Moment] = []
    for event in events {
      let moment: Moment
      switch event.kind {
      case .accountDeletionRequested: moment = (event.occurredAt, 0)
      case .accountDelete: moment = (event.occurredAt, 1)
      default: continue
      }
      if deletions.contains(where: { $0 >= moment }) {
        expect(event, "no-effect.email-relay")
        continue
      }
      deletions.append(moment)
      expect(event, "relay-changed")
    }
    var latest: Moment?
    for event in events {
      let rank: Int
      var after = Mail.unknown
      switch event.kind {
      case .emailEnabled(let address, _): (rank, after) = (0, .known(.enabled, address, since: event.occurredAt))
      case .emailDisabled(let address, _): (rank, after) = (1, .known(.disabled, address, since: event.occurredAt))
      case .consentRevoked, .credentialInvalid: rank = 2
      case .accountDeletionRequested, .accountDelete, .accountTransferred: continue
      }
      guard deletions.isEmpty else {
        alternatives.append(["\(event.id.text).relay-changed", "\(event.id.text).no-effect.email-relay"])
        continue
      }
      if let latest, latest >= (event.occurredAt, rank) {
        expect(event, "no-effect.email-relay")
        continue
      }
      (latest, mail) = ((event.occurredAt, rank), after)
      expect(event, "relay-changed")
    }
    if !deletions.isEmpty { mail = .erased }
  }

  private mutating func expect(_ event: AccountEvent, _ outcome: String) {
    outcomes.insert("\(event.id.text).\(outcome)")
  }
}
