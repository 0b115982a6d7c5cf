import JSON

/// What stands on `Topic.emailRelay`: whether mail to an account may be sent. The topic is compacted, so the last record
/// of an account is the one that counts, and a tombstone means that nothing is known of it any more.
public struct RelayRecord: Sendable, Hashable {
  /// The account.
  public let account: Account
  /// Whether mail may be sent, since when, and to which address.
  public let state: RelayState
  /// The event that said so.
  public let event: EventID

  /// A record from its parts.
  public init(account: Account, state: RelayState, event: EventID) {
    (self.account, self.state, self.event) = (account, state, event)
  }

  /// The value of the record, described by `schemas/email-relay.v1.json`.
  var json: [UInt8] {
    var members: [JSONValue.Member] = [
      .init("team", .string(account.team.text)), .init("sub", .string(account.subject.text)),
      .init("status", .string(state.status.rawValue)), .init("since", .integer(state.since.milliseconds)),
    ]
    if let address = state.address {
      members.append(.init("email", .string(address.text)))
      members.append(.init("is_private_email", .boolean(state.isPrivate)))
    }
    members.append(.init("event", .string(event.text)))
    return JSONValue.object(members).bytes
  }

  /// Reads the value of a record on `Topic.emailRelay`. Members that this version does not know are passed over.
  public init(decoding value: [UInt8]) throws(EventDecodingError) {
    let members: Members
    do throws(JSONError) {
      members = try unsafe Members(reading: value.span.bytes)
    } catch {
      throw EventDecodingError(reading: error)
    }
    func required<Value>(_ value: Value?, _ name: String) throws(EventDecodingError) -> Value {
      guard let value else { throw EventDecodingError(code: .malformedMember, detail: name) }
      return value
    }
    guard let status = RelayState.Status(rawValue: try required(members.status, "status")) else {
      throw EventDecodingError(code: .unknownType, detail: "status")
    }
    account = Account(team: try required(members.team, "team"), subject: try required(members.subject, "sub"))
    state = RelayState(
      status: status, address: members.address, isPrivate: members.isPrivate ?? false,
      since: try required(members.since, "since"))
    event = try required(members.event, "event")
  }
}

/// The members as they were read: nil where one is missing or not of its form.
private struct Members {
  var team: TeamID?
  var subject: AppleSubject?
  var status: String?
  var since: Timestamp?
  var address: RelayAddress?
  var isPrivate: Bool?
  var event: EventID?

  /// Far more than a state has, so that later versions may add to it.
  private static let limits = JSONLimits(bytes: 65_536, depth: 16, members: 64)

  init(reading value: RawSpan) throws(JSONError) {
    self = try JSONReader.read(value, Self.limits) { reader throws(JSONError) in
      guard try reader.kind == .object else { throw JSONError(.malformed, at: reader.offset) }
      var members = Members()
      try reader.readObject { name, value throws(JSONError) in
        switch name {
        case "team": members.team = TeamID(try value.readString())
        case "sub": members.subject = AppleSubject(try value.readString())
        case "status": members.status = try value.readString()
        case "since": members.since = Timestamp(milliseconds: try value.readInteger())
        case "email": members.address = RelayAddress(try value.readString())
        case "is_private_email": members.isPrivate = try value.readBoolean()
        case "event": members.event = EventID(try value.readString())
        default: break
        }
      }
      return members
    }
  }

  private init() {}
}
