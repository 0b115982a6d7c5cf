extension Fault {
  /// What it does, in one line for `--help`.
  package var summary: String { meaning.summary }

  /// What a receiver that keeps to the rules makes of a notification with this fault alone.
  package var rightAnswer: RightAnswer { meaning.answer }

  private var meaning: (summary: String, answer: RightAnswer) {
    switch self {
    case .eventsObject: ("`events` is an object, as on Apple's page", .accepted)
    case .eventsArray: ("`events` is an array of objects", .accepted)
    case .eventsArrayInString: ("`events` is a string that holds an array", .accepted)
    case .eventsStringsInArray: ("`events` is an array of strings that hold objects", .accepted)
    case .severalEvents: ("two events in one notification: this one, and `consent-revoked`", .accepted)
    case .eventTimeSeconds: ("`event_time` in seconds, as on Apple's page", .accepted)
    case .privateEmailBoolean: ("`is_private_email` is a boolean (e-mail events)", .accepted)
    case .audienceArray: ("`aud` is an array of one", .accepted)
    case .unknownMembers: ("members that nobody knows yet, in the claims and in the event", .accepted)

    case .unknownType: ("an event of a type that nobody knows yet", .quarantined)
    case .eventsNumber: ("`events` is a number", .quarantined)
    case .eventWithoutSubject: ("the event has no `sub`", .quarantined)
    case .eventWithoutTime: ("the event has no `event_time`", .quarantined)
    case .eventFromTheFuture: ("`event_time` is a day ahead, the signature is of now", .quarantined)
    case .expired: ("happened and signed two days ago: `exp` was yesterday", .quarantined)
    case .fromTheFuture: ("happened and signed a day from now", .quarantined)

    case .wrongIssuer: ("`iss` is somebody else", .refused(status: 400))
    case .wrongAudience: ("`aud` is somebody else's app", .refused(status: 400))
    case .identityToken: ("an identity token: same issuer, audience and key", .refused(status: 400))
    case .topLevelSubject: ("a `sub` beside `events`", .refused(status: 400))
    case .topLevelNonce: ("a `nonce` beside `events`", .refused(status: 400))
    case .withoutEvents: ("no `events`", .refused(status: 400))
    case .withoutIdentifier: ("no `jti`", .refused(status: 400))
    case .withoutExpiry: ("no `exp`", .refused(status: 400))
    case .claimTwice: ("`aud` stands twice", .refused(status: 400))
    case .claimsNotJSON: ("the claims break off in the middle", .refused(status: 400))

    case .forgedSignature: ("signed by another key under Apple's `kid`", .refused(status: 400))
    case .changedClaims: ("`exp` was changed after signing", .refused(status: 400))
    case .unknownKey: ("a `kid` that no key has", .refused(status: 400))
    case .keyInHeader: ("the forger's key in the header, `jwk`", .refused(status: 400))
    case .criticalHeader: ("the header demands an extension, `crit`", .refused(status: 400))
    case .algorithmNone: ("`alg` is `none`, without a signature", .refused(status: 400))
    case .algorithmHS256: ("`alg` is `HS256`, keyed with the public key", .refused(status: 400))
    case .paddedBase64: ("base64 with padding", .refused(status: 400))
    case .twoParts: ("the signature's part is missing", .refused(status: 400))

    case .bodyEmpty: ("an empty body", .refused(status: 400))
    case .bodyForm: ("the body is a form, not JSON", .refused(status: 400))
    case .bodyWithoutPayload: ("`signedPayload` for `payload`, as the App Store has it", .refused(status: 400))
    case .bodyPayloadTwice: ("`payload` stands twice", .refused(status: 400))
    case .bodyTenMegabytes: ("ten megabytes", .refused(status: 413))
    }
  }
}
