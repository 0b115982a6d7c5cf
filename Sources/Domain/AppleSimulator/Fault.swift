/// What can be unusual or wrong about a notification. The raw value is its name on the command line; `summary` says what
/// each does.
package enum Fault: String, Sendable, CaseIterable {
  // Forms that Apple is known to use, or documents.
  case eventsObject = "events-object"
  case eventsArray = "events-array"
  case eventsArrayInString = "events-array-in-string"
  case eventsStringsInArray = "events-strings-in-array"
  case severalEvents = "several-events"
  case eventTimeSeconds = "event-time-seconds"
  case privateEmailBoolean = "private-email-boolean"
  case audienceArray = "audience-array"
  case unknownMembers = "unknown-members"

  // What Apple signed, and what nobody here can act on.
  case unknownType = "unknown-type"
  case eventsNumber = "events-number"
  case eventWithoutSubject = "event-without-subject"
  case eventWithoutTime = "event-without-time"
  case eventFromTheFuture = "event-from-the-future"
  case expired = "expired"
  case fromTheFuture = "from-the-future"

  // Claims that are not for us, or of no notification.
  case wrongIssuer = "wrong-issuer"
  case wrongAudience = "wrong-audience"
  case identityToken = "identity-token"
  case topLevelSubject = "top-level-subject"
  case topLevelNonce = "top-level-nonce"
  case withoutEvents = "without-events"
  case withoutIdentifier = "without-jti"
  case withoutExpiry = "without-exp"
  case claimTwice = "claim-twice"
  case claimsNotJSON = "claims-not-json"

  // Signatures that are not Apple's.
  case forgedSignature = "forged-signature"
  case changedClaims = "changed-claims"
  case unknownKey = "unknown-kid"
  case keyInHeader = "key-in-header"
  case criticalHeader = "critical-header"
  case algorithmNone = "algorithm-none"
  case algorithmHS256 = "algorithm-hs256"
  case paddedBase64 = "padded-base64"
  case twoParts = "two-parts"

  // Bodies that hold no notification.
  case bodyEmpty = "body-empty"
  case bodyForm = "body-form"
  case bodyWithoutPayload = "body-without-payload"
  case bodyPayloadTwice = "body-payload-twice"
  case bodyTenMegabytes = "body-ten-megabytes"

  /// What a receiver that keeps to the rules makes of it.
  package enum RightAnswer: Sendable, Hashable {
    /// 200, and the event is told on.
    case accepted
    /// 200, and it is kept aside: Apple signed it for us.
    case quarantined
    /// This status, 400 or 413, and nothing else happens.
    case refused(status: Int)

    /// The status that Apple gets.
    package var status: Int {
      switch self {
      case .accepted, .quarantined: 200
      case .refused(let status): status
      }
    }
  }
}
