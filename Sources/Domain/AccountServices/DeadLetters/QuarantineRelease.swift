package import AccountEvents
package import AppleID
package import Kafka

/// Decides whether what stands in quarantine can be published after all: whether Apple signed it for an app of ours, and
/// it is understood, whatever its age.
package struct QuarantineRelease: Sendable {
  /// What is to be done.
  package enum Verdict: Sendable {
    /// The event is to be published as the ingress would have.
    case publish(EventRecord)
    /// It cannot be published, for this reason.
    case refuse(String)
  }

  private let verifier: NotificationVerifier
  private let keys: [KeyID: AppleSigningKey]

  /// A release by these keys, which verified something once.
  package init(_ verifier: NotificationVerifier, keys: [KeyID: AppleSigningKey]) {
    (self.verifier, self.keys) = (verifier, keys)
  }

  /// Judges a record of the quarantine topic by what Apple signed: nothing else of it is believed.
  package func judge(_ record: ConsumedRecord, at now: Timestamp) -> Verdict {
    let headers = record.headers
    func text(_ name: String) -> String? {
      headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
    guard let jws = headers.last(where: { $0.name == EventRecord.signatureHeader })?.value else {
      return .refuse("it does not hold what Apple signed")
    }
    switch verifier.verifyAgain(jws, at: now, key: { keys[$0] }) {
    case .refused(let refusal): return .refuse(refusal.description)
    case .unknownKey(let id): return .refuse("its key \(id) is not on \(Topic.signingKeys)")
    case .verified(let notification):
      for event in notification.events where event.id.text == text("ce_id") {
        switch event {
        case .known(let known):
          guard known.team.text == text("ce_team"), known.audience.text == text("ce_audience") else {
            return .refuse("by the configuration of today it is for \(known.audience) of the team \(known.team)")
          }
          return .publish(EventRecord(known, jws: notification.jws))
        case .quarantined(let kept): return .refuse(kept.reason.wordsOfRefusal)
        }
      }
      return .refuse("what Apple signed does not hold this event")
    }
  }
}

extension QuarantinedEvent.Reason {
  /// Why an event that is still to be put aside is not published.
  fileprivate var wordsOfRefusal: String {
    switch self {
    case .unknownType: "this version does not know its type either"
    case .unknownForm: "this version does not know its form either"
    case .notYetValid: "its time still lies ahead of this machine's clock"
    case .expired: "its time is over"
    case .retiredKey: "Apple no longer had the key when it was signed"
    case .refused: "its topic refuses it"
    }
  }
}
