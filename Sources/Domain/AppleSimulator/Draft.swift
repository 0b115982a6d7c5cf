import AccountEvents

/// A notification before it is signed, in the pieces that a fault can take hold of.
struct Draft {
  var header: Members
  var claims: Members
  var event: Members
  var events = EventsForm.string
  var signature = SignatureForm.apple
  var body = BodyForm.payload
  var encoding = EncodingForm.strict

  /// How the claim `events` holds the event.
  enum EventsForm { case absent, string, object, array, arrayInString, stringsInArray, several, number }
  /// What stands for the signature.
  enum SignatureForm { case apple, forged, embeddedKey, ofOtherClaims, none, hmac }
  /// What the parts of the JWS look like.
  enum EncodingForm { case strict, padded, twoParts, claimsCutOff }
  /// What is posted.
  enum BodyForm { case payload, empty, form, withoutPayload, payloadTwice, tenMegabytes }

  /// Exactly what Apple would sign with the key `kid`.
  init(_ notification: AppleNotification, kid: String) {
    let issuedAt = notification.issuedAt.milliseconds / 1000
    header = Members(["kid": quoted(kid), "alg": quoted("RS256")])
    claims = Members([
      "iss": quoted(notification.issuer), "aud": quoted(notification.audience), "exp": String(issuedAt + 86_400),
      "iat": String(issuedAt), "jti": quoted(notification.jti),
    ])
    event = Members([
      "type": quoted(notification.type.rawValue), "sub": quoted(notification.person.subject),
      "event_time": String(notification.occurredAt.milliseconds),
    ])
    if notification.type.isAboutEmail {
      event["email"] = quoted(notification.person.address)
      event["is_private_email"] = quoted("true")
    }
  }

  /// The claims as they are signed.
  var claimsJSON: String {
    var claims = claims
    claims["events"] =
      switch events {
      case .absent: nil
      case .string: quoted(event.json)
      case .object: event.json
      case .array: "[\(event.json)]"
      case .arrayInString: quoted("[\(event.json)]")
      case .stringsInArray: "[\(quoted(event.json))]"
      case .several: quoted("[\(event.json),\(secondEvent.json)]")
      case .number: "7"
      }
    return claims.json
  }

  /// What goes with the event where there are several: the same person revokes their consent at the same moment.
  private var secondEvent: Members {
    var second = event
    second["type"] = quoted(NotificationType.consentRevoked.rawValue)
    second["email"] = nil
    second["is_private_email"] = nil
    return second
  }
}
