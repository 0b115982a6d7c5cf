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
    var json: [UInt8] = []
    json.reserveCapacity(320)
    json.append(#"{"team":""#, account.team.text)
    json.append(#"","sub":""#, account.subject.text)
    json.append(#"","status":""#, state.status.rawValue)
    json.append(#"","since":"#, state.since.milliseconds)
    if let address = state.address {
      json.append(#","email":"#, escaping: address.text)
      json.append(contentsOf: (state.isPrivate ? #","is_private_email":true"# : #","is_private_email":false"#).utf8)
    }
    json.append(#","event":""#, event.text)
    json.append(contentsOf: #""}"#.utf8)
    return json
  }

  /// Reads the value of a record on `Topic.emailRelay`. Members that this version does not know are passed over.
  public init(decoding value: [UInt8]) throws(EventDecodingError) {
    let members = try Members(of: value)
    guard let status = RelayState.Status(rawValue: try members.required(members.status, "status")) else {
      throw EventDecodingError(code: .unknownType, detail: "status")
    }
    account = Account(
      team: try members.required(members.team, "team"), subject: try members.required(members.subject, "sub"))
    state = RelayState(
      status: status, address: members.address, isPrivate: members.address != nil && members.isPrivate == true,
      since: try members.required(members.since, "since"))
    event = try members.required(members.event, "event")
  }
}

private struct Members: RecordMembers {
  var team: TeamID?
  var subject: AppleSubject?
  var status: String?
  var since: Timestamp?
  var address: RelayAddress?
  var isPrivate: Bool?
  var event: EventID?

  mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch name {
    case "team": team = TeamID(try value.readString())
    case "sub": subject = AppleSubject(try value.readString())
    case "status": status = try value.readString()
    case "since": since = Timestamp(milliseconds: try value.readInteger())
    case "email": address = RelayAddress(try value.readString())
    case "is_private_email": isPrivate = try value.readBoolean()
    case "event": event = EventID(try value.readString())
    default: break
    }
  }
}
