/// What Apple signed for us and we cannot act on: kept, with the reason, until someone decides.
public struct QuarantinedEvent: Sendable, Hashable {
  /// Tells this event from all others; the same whenever Apple sends it again.
  public let id: EventID
  /// The team that the app belongs to.
  public let team: TeamID
  /// The app that Apple addressed.
  public let audience: ClientID
  /// Whom it is about, where that could be read.
  public let subject: AppleSubject?
  /// When Apple signed the notification.
  public let issuedAt: Timestamp
  /// Why it was not understood.
  public let reason: Reason
  /// The event's JSON as Apple wrote it, all claims where no event could be told from them, or the value that its own topic
  /// has refused: a JSON object.
  public let json: [UInt8]

  /// Why an event is kept aside. The raw value stands in the record's header and in metrics.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// An event of a type that this version does not know.
    case unknownType = "unknown-type"
    /// `events` or an event in it has a form that this version does not know.
    case unknownForm = "unknown-form"
    /// The notification's time was over when it arrived.
    case expired = "expired"
    /// The notification's time, or its event's, is ahead of our clock.
    case notYetValid = "not-yet-valid"
    /// The key that signed the notification is no longer Apple's, and was not when the notification says it was signed, as
    /// far as could be seen.
    case retiredKey = "retired-key"
    /// Its own topic never takes its record: the record is too large, mostly.
    case refused = "refused"
  }

  /// A quarantined event from its parts.
  public init(
    id: EventID, team: TeamID, audience: ClientID, subject: AppleSubject?, issuedAt: Timestamp, reason: Reason,
    json: [UInt8]
  ) {
    (self.id, self.team, self.audience, self.subject) = (id, team, audience, subject)
    (self.issuedAt, self.reason, self.json) = (issuedAt, reason, json)
  }

  /// The event, which is understood and which its own topic refuses.
  public init(refused event: AccountEvent) {
    self.init(
      id: event.id, team: event.team, audience: event.audience, subject: event.subject, issuedAt: event.issuedAt,
      reason: .refused, json: event.json)
  }

  /// Team, audience and id, with a space between them, which none of them can hold: the key of its record.
  ///
  /// The topic is compacted, so the key decides which records replace each other: the same event again and the note of
  /// what was decided about it replace it. Another event of the same notification, or an equal id that Apple used for
  /// another app, has a key of its own.
  public var key: [UInt8] { Array("\(team) \(audience) \(id)".utf8) }
}
