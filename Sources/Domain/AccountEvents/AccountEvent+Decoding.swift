import JSON

extension AccountEvent {
  /// Reads the value of a record on `Topic.accountEvents`. Members that this version does not know are passed over.
  public init(decoding value: [UInt8]) throws(EventDecodingError) {
    let members = try Members(of: value)
    self.init(
      id: try members.required(members.id, "id"), team: try members.required(members.team, "team"),
      audience: try members.required(members.audience, "audience"),
      subject: try members.required(members.subject, "sub"), kind: try members.kind,
      occurredAt: try members.required(members.occurredAt, "event_time"),
      issuedAt: try members.required(members.issuedAt, "issued_at"))
  }
}

private struct Members: RecordMembers {
  var id: EventID?
  var type: String?
  var team: TeamID?
  var audience: ClientID?
  var subject: AppleSubject?
  var occurredAt: Timestamp?
  var issuedAt: Timestamp?
  var address: RelayAddress?
  var isPrivate: Bool?

  mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch name {
    case "id": id = EventID(try value.readString())
    case "type": type = try value.readString()
    case "team": team = TeamID(try value.readString())
    case "audience": audience = ClientID(try value.readString())
    case "sub": subject = AppleSubject(try value.readString())
    case "event_time": occurredAt = Timestamp(milliseconds: try value.readInteger())
    case "issued_at": issuedAt = Timestamp(milliseconds: try value.readInteger())
    case "email": address = RelayAddress(try value.readString())
    case "is_private_email": isPrivate = try value.readBoolean()
    default: break
    }
  }

  var kind: AccountEvent.Kind {
    get throws(EventDecodingError) {
      switch try required(type, "type") {
      case "email-enabled":
        .emailEnabled(try required(address, "email"), isPrivate: try required(isPrivate, "is_private_email"))
      case "email-disabled":
        .emailDisabled(try required(address, "email"), isPrivate: try required(isPrivate, "is_private_email"))
      case "consent-revoked": .consentRevoked
      case "account-delete": .accountDelete
      case "account-deletion-requested": .accountDeletionRequested
      case "credential-invalid": .credentialInvalid
      case "account-transferred": .accountTransferred
      default: throw EventDecodingError(code: .unknownType, detail: "type")
      }
    }
  }
}
