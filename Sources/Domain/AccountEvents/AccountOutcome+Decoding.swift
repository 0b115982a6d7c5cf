import JSON

extension AccountOutcome {
  /// Reads the value of a record on `Topic.outcomes`. Members that this version does not know are passed over.
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
    guard let name = Name(rawValue: try required(members.outcome, "outcome")) else {
      throw EventDecodingError(code: .unknownType, detail: "outcome")
    }
    self.init(
      account: try required(members.account, "account"), name: name,
      cause: Cause(
        id: try required(members.cause.id, "cause.id"), type: try required(members.cause.type, "cause.type"),
        occurredAt: try required(members.cause.occurredAt, "cause.event_time")),
      consumer: try required(members.consumer, "consumer"), doneAt: try required(members.doneAt, "done_at"),
      targets: try members.targets.map { target throws(EventDecodingError) in
        Target(
          name: try required(target.name, "targets.name"), state: try required(target.state, "targets.state"),
          before: target.before, affected: target.affected, after: target.after)
      })
  }
}

/// The members as they were read: nil where one is missing or not of its form.
private struct Members {
  struct Cause {
    var id: EventID?
    var type: String?
    var occurredAt: Timestamp?
  }

  struct Target {
    var name, state: String?
    var before, affected, after: Int64?
  }

  var account: AccountHash?
  var outcome, consumer: String?
  var cause = Cause()
  var doneAt: Timestamp?
  var targets: [Target] = []

  /// Room for a thousand targets.
  private static let limits = JSONLimits(bytes: 1 << 20, depth: 16, members: 8192)

  init(reading value: RawSpan) throws(JSONError) {
    self = try JSONReader.read(value, Self.limits) { reader throws(JSONError) in
      guard try reader.kind == .object else { throw JSONError(.malformed, at: reader.offset) }
      var members = Members()
      try reader.readObject { name, value throws(JSONError) in
        switch name {
        case "account": members.account = AccountHash(try value.readString())
        case "outcome": members.outcome = try value.readString()
        case "consumer": members.consumer = try value.readString()
        case "done_at": members.doneAt = Timestamp(milliseconds: try value.readInteger())
        case "cause":
          try value.readObject { name, value throws(JSONError) in
            switch name {
            case "id": members.cause.id = EventID(try value.readString())
            case "type": members.cause.type = try value.readString()
            case "event_time": members.cause.occurredAt = Timestamp(milliseconds: try value.readInteger())
            default: break
            }
          }
        case "targets":
          try value.readArray { value throws(JSONError) in
            var target = Target()
            try value.readObject { name, value throws(JSONError) in
              switch name {
              case "name": target.name = try value.readString()
              case "state": target.state = try value.readString()
              case "before": target.before = try value.readInteger()
              case "affected": target.affected = try value.readInteger()
              case "after": target.after = try value.readInteger()
              default: break
              }
            }
            members.targets.append(target)
          }
        default: break
        }
      }
      return members
    }
  }

  private init() {}
}
