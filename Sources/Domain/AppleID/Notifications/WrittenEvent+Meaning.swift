import AccountEvents

extension WrittenEvent {
  /// What the event says, or why we cannot tell.
  enum Meaning {
    case event(AccountEvent.Kind, AppleSubject, occurredAt: Timestamp)
    case unclear(QuarantinedEvent.Reason)
  }

  /// Reads the event as one of the types that we know.
  var meaning: Meaning {
    guard let type else { return .unclear(.unknownForm) }
    let kind: AccountEvent.Kind?
    switch type {
    case "email-enabled": kind = address.map { .emailEnabled($0, isPrivate: isPrivate ?? false) }
    case "email-disabled": kind = address.map { .emailDisabled($0, isPrivate: isPrivate ?? false) }
    case "consent-revoked": kind = .consentRevoked
    case "account-delete", "account-deleted": kind = .accountDelete  // Apple's older and newer spelling
    default: return .unclear(.unknownType)
    }
    guard let kind, let person, let moment else { return .unclear(.unknownForm) }
    return .event(kind, person, occurredAt: moment)
  }

  /// Whom the event is about, where that can be read.
  var person: AppleSubject? { subject.flatMap(AppleSubject.init) }

  private var address: RelayAddress? { isPrivacyUnclear ? nil : email.flatMap(RelayAddress.init) }

  /// Apple sends milliseconds, and its page shows seconds. Below this bound a number of milliseconds would lie before
  /// 1973, and above it a number of seconds after 5138.
  private var moment: Timestamp? {
    time.flatMap { $0 < 100_000_000_000 ? Timestamp(seconds: $0) : Timestamp(milliseconds: $0) }
  }
}
