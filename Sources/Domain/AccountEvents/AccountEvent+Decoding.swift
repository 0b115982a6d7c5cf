import JSON

extension AccountEvent {
  /// Reads the value of a record on `Topic.accountEvents`. Members that this version does not know are passed over.
  public init(decoding value: [UInt8]) throws(EventDecodingError) {
    let members: Members
    do throws(JSONError) {
      members = try unsafe Members(reading: value.span.bytes)
    } catch {
      throw EventDecodingError(reading: error)
    }
    self.init(
      id: try members.required(members.id, "id"), team: try members.required(members.team, "team"),
      audience: try members.required(members.audience, "audience"),
      subject: try members.required(members.subject, "sub"), kind: try members.kind,
      occurredAt: try members.required(members.occurredAt, "event_time"),
      issuedAt: try members.required(members.issuedAt, "issued_at"))
  }
}

/// The members as they were read: nil where one is missing or not of its form.
private struct Members {
  var id: EventID?
  var type: String?
  var team: TeamID?
  var audience: ClientID?
  var subject: AppleSubject?
  var occurredAt: Timestamp?
  var issuedAt: Timestamp?
  var address: RelayAddress?
  var isPrivate: Bool?

  /// Far more than an event has, so that later versions may add to it.
  private static let limits = JSONLimits(bytes: 65_536, depth: 16, members: 64)

  init(reading value: RawSpan) throws(JSONError) {
    self = try JSONReader.read(value, Self.limits) { reader throws(JSONError) in
      guard try reader.kind == .object else { throw JSONError(.malformed, at: reader.offset) }
      var members = Members()
      try reader.readObject { name, value throws(JSONError) in
        switch name {
        case "id": members.id = EventID(try value.readString())
        case "type": members.type = try value.readString()
        case "team": members.team = TeamID(try value.readString())
        case "audience": members.audience = ClientID(try value.readString())
        case "sub": members.subject = AppleSubject(try value.readString())
        case "event_time": members.occurredAt = Timestamp(milliseconds: try value.readInteger())
        case "issued_at": members.issuedAt = Timestamp(milliseconds: try value.readInteger())
        case "email": members.address = RelayAddress(try value.readString())
        case "is_private_email": members.isPrivate = try value.readBoolean()
        default: break
        }
      }
      return members
    }
  }

  private init() {}

  func required<Value>(_ value: Value?, _ name: String) throws(EventDecodingError) -> Value {
    guard let value else { throw EventDecodingError(code: .malformedMember, detail: name) }
    return value
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
      default: throw EventDecodingError(code: .unknownType, detail: "type")
      }
    }
  }
}
