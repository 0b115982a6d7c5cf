import JSON

extension AccountOutcome {
  /// Reads the value of a record on `Topic.outcomes`. Members that this version does not know are passed over.
  public init(decoding value: [UInt8]) throws(EventDecodingError) {
    // Room for a thousand targets.
    let members = try Members(of: value, JSONLimits(bytes: 1 << 20, depth: 16, members: 8192))
    guard let name = Name(rawValue: try members.required(members.outcome, "outcome")) else {
      throw EventDecodingError(code: .unknownType, detail: "outcome")
    }
    var reason: Reason?
    if name == .noEffect {
      reason = Reason(rawValue: try members.required(members.reason, "reason"))
      if reason == nil { throw EventDecodingError(code: .unknownType, detail: "reason") }
    }
    self.init(
      account: try members.hash(), name: name, reason: reason,
      cause: Cause(
        id: try members.required(members.cause.id, "cause.id"),
        type: try members.required(members.cause.type, "cause.type"),
        occurredAt: try members.required(members.cause.occurredAt, "cause.event_time")),
      consumer: try members.required(members.consumer, "consumer"),
      doneAt: try members.required(members.doneAt, "done_at"),
      targets: try members.targets.map { target throws(EventDecodingError) in try Target(target) })
  }
}

extension AccountOutcome.Target {
  /// Targets that `text` has written; none where the text is another's.
  package static func list(_ text: String) -> [Self] {
    // The same limits as those of the record that they stand in.
    let limits = JSONLimits(bytes: 1 << 20, depth: 16, members: 8192)
    do throws(JSONError) {
      let read = try unsafe JSONReader.read(Array(text.utf8).span.bytes, limits) { reader throws(JSONError) in
        var targets: [TargetMembers] = []
        try reader.readArray { value throws(JSONError) in targets.append(try TargetMembers(next: &value)) }
        return targets
      }
      return try read.map { members throws(JSONError) in
        do throws(EventDecodingError) { return try Self(members) } catch { throw JSONError(.malformed, at: 0) }
      }
    } catch {
      return []
    }
  }

  fileprivate init(_ members: TargetMembers) throws(EventDecodingError) {
    self.init(
      name: try members.required(members.name, "targets.name"),
      state: try members.required(members.state, "targets.state"),
      before: members.before, affected: members.affected, after: members.after, note: members.note)
  }
}

private struct Members: RecordMembers {
  var account, accountKey: String?
  var outcome, reason, consumer: String?
  var cause = CauseMembers()
  var doneAt: Timestamp?
  var targets: [TargetMembers] = []

  mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch name {
    case "account": account = try value.readString()
    case "account_key": accountKey = try value.readString()
    case "outcome": outcome = try value.readString()
    case "reason": reason = try value.readString()
    case "consumer": consumer = try value.readString()
    case "done_at": doneAt = Timestamp(milliseconds: try value.readInteger())
    case "cause": cause = try CauseMembers(next: &value)
    case "targets":
      try value.readArray { value throws(JSONError) in targets.append(try TargetMembers(next: &value)) }
    default: break
    }
  }

  /// The account's hash, with the key that it names; none is a store's first.
  func hash() throws(EventDecodingError) -> AccountHash {
    let key = try accountKey.map { text throws(EventDecodingError) in try required(HashKeyID(text), "account_key") }
    return try required(account.flatMap { AccountHash($0, key: key) }, "account")
  }
}

private struct CauseMembers: RecordMembers {
  var id: EventID?
  var type: String?
  var occurredAt: Timestamp?

  mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch name {
    case "id": id = EventID(try value.readString())
    case "type": type = try value.readString()
    case "event_time": occurredAt = Timestamp(milliseconds: try value.readInteger())
    default: break
    }
  }
}

private struct TargetMembers: RecordMembers {
  var name, state, note: String?
  var before, affected, after: Int64?

  mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch name {
    case "name": self.name = try value.readString()
    case "state": state = try value.readString()
    case "before": before = try value.readInteger()
    case "affected": affected = try value.readInteger()
    case "after": after = try value.readInteger()
    case "note": note = try value.readString()
    default: break
    }
  }
}
