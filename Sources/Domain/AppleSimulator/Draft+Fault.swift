import AccountEvents

extension Draft {
  /// Makes the fault. The notification is the one that the draft was made of.
  mutating func apply(_ fault: Fault, to notification: AppleNotification) {
    switch fault {
    case .eventsObject: events = .object
    case .eventsArray: events = .array
    case .eventsArrayInString: events = .arrayInString
    case .eventsStringsInArray: events = .stringsInArray
    case .severalEvents: events = .several
    case .eventTimeSeconds: event["event_time"] = String(notification.occurredAt.milliseconds / 1000)
    case .privateEmailBoolean: if event["is_private_email"] != nil { event["is_private_email"] = "true" }
    case .audienceArray: claims["aud"] = "[\(quoted(notification.audience))]"
    case .unknownMembers:
      event["reason"] = #"{"code":[1,null,true]}"#
      claims["txn"] = quoted("2024.1")

    case .unknownType: event["type"] = quoted("account-merged")
    case .eventsNumber: events = .number
    case .eventWithoutSubject: event["sub"] = nil
    case .eventWithoutTime: event["event_time"] = nil
    case .eventFromTheFuture: event["event_time"] = String((notification.occurredAt + .day).milliseconds)
    case .expired: move(notification, by: .day * -2)
    case .fromTheFuture: move(notification, by: .day)

    case .wrongIssuer: claims["iss"] = quoted("https://appleid.example.com")
    case .wrongAudience: claims["aud"] = quoted("com.example.somebody-else")
    case .identityToken: becomeIdentityToken(notification)
    case .topLevelSubject: claims["sub"] = quoted(notification.person.subject)
    case .topLevelNonce: claims["nonce"] = quoted("n-0S6_WzA2Mj")
    case .withoutEvents: events = .absent
    case .withoutIdentifier: claims["jti"] = nil
    case .withoutExpiry: claims["exp"] = nil
    case .claimTwice: claims.repeatMember("aud", quoted(notification.audience))
    case .claimsNotJSON: encoding = .claimsCutOff

    case .forgedSignature: signature = .forged
    case .changedClaims: signature = .ofOtherClaims
    case .unknownKey: header["kid"] = quoted(String(notification.jti.prefix(10)))
    case .keyInHeader: signature = .embeddedKey
    case .criticalHeader:
      header["crit"] = #"["urn:example:extension"]"#
      header["urn:example:extension"] = "true"
    case .algorithmNone:
      header["alg"] = quoted("none")
      signature = .none
    case .algorithmHS256:
      header["alg"] = quoted("HS256")
      signature = .hmac
    case .paddedBase64: encoding = .padded
    case .twoParts: encoding = .twoParts

    case .bodyEmpty: body = .empty
    case .bodyForm: body = .form
    case .bodyWithoutPayload: body = .withoutPayload
    case .bodyPayloadTwice: body = .payloadTwice
    case .bodyTenMegabytes: body = .tenMegabytes
    }
  }

  /// Lets everything happen earlier or later.
  private mutating func move(_ notification: AppleNotification, by duration: Duration) {
    let issuedAt = (notification.issuedAt + duration).milliseconds / 1000
    claims["exp"] = String(issuedAt + 86_400)
    claims["iat"] = String(issuedAt)
    event["event_time"] = String((notification.occurredAt + duration).milliseconds)
  }

  /// The claims that Apple gives to everybody who signs in, in their order there.
  private mutating func becomeIdentityToken(_ notification: AppleNotification) {
    let issuedAt = notification.issuedAt.milliseconds / 1000
    events = .absent
    claims = Members([
      "iss": quoted(notification.issuer), "aud": quoted(notification.audience), "exp": String(issuedAt + 86_400),
      "iat": String(issuedAt), "sub": quoted(notification.person.subject), "nonce": quoted("n-0S6_WzA2Mj"),
      "c_hash": quoted("77QmUPtjPfzWtF2AnpK9RQ"), "email": quoted(notification.person.address),
      "email_verified": "true", "is_private_email": "true", "auth_time": String(issuedAt), "nonce_supported": "true",
    ])
  }
}

extension Duration {
  fileprivate static let day = Duration.seconds(86_400)
}
