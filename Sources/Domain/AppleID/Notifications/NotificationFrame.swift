import AccountEvents

/// What all events of one notification have in common.
struct NotificationFrame: ~Copyable {
  let id: EventID
  let team: TeamID
  let audience: ClientID
  let issuedAt: Timestamp
  /// All claims: what is kept where an event cannot be told from them.
  let payload: [UInt8]
  /// Why no event of it is acted on, whatever it says; nil while its time is right.
  let untimely: QuarantinedEvent.Reason?
  /// The latest moment at which an event may have happened, in milliseconds since 1970.
  let latest: Int64

  /// The longest `jti`, in bytes, that leaves room in an `EventID` for the index of every event that a body can hold.
  /// Apple's have 22.
  static let longestID = 120

  /// The events, each by itself known or to be kept aside; never none, because the notification is an obligation.
  func events(in claim: NotificationClaims.Events) -> [VerifiedNotification.Event] {
    let text =
      switch claim {
      case .text(let text): text
      case .value(let range): Array(payload[range])
      }
    guard let written = WrittenEvent.all(in: text), !written.isEmpty else {
      return [.quarantined(aside(id, subject: nil, .unknownForm, json: payload))]
    }
    guard written.count > 1 else { return [event(written[0], id)] }
    return written.enumerated().map { index, written in
      event(written, EventID(jti: id, index: index) ?? id)  // never nil: see `longestID`
    }
  }

  private func event(_ written: WrittenEvent, _ id: EventID) -> VerifiedNotification.Event {
    let reason: QuarantinedEvent.Reason
    switch written.meaning {
    case .unclear(let unclear): reason = unclear
    case .event(let kind, let subject, let occurredAt):
      guard let wrongTime = untimely ?? (latest < occurredAt.milliseconds ? .notYetValid : nil) else {
        return .known(
          AccountEvent(
            id: id, team: team, audience: audience, subject: subject, kind: kind, occurredAt: occurredAt,
            issuedAt: issuedAt))
      }
      reason = wrongTime
    }
    return .quarantined(aside(id, subject: written.subject, reason, json: written.json.map(Array.init) ?? payload))
  }

  private func aside(
    _ id: EventID, subject: AppleSubject?, _ reason: QuarantinedEvent.Reason, json: [UInt8]
  ) -> QuarantinedEvent {
    QuarantinedEvent(
      id: id, team: team, audience: audience, subject: subject, issuedAt: issuedAt, reason: reason, json: json)
  }
}
