import JSON

extension AccountOutcome {
  /// The value of the outcome's record, described by `schemas/account-outcome.v1.json`.
  var json: [UInt8] {
    var members: [JSONValue.Member] = [
      .init("account", .string(account.description)),
      .init("outcome", .string(name.rawValue)),
      .init(
        "cause",
        [
          "id": .string(cause.id.text), "type": .string(cause.type),
          "event_time": .integer(cause.occurredAt.milliseconds),
        ]),
      .init("consumer", .string(consumer)),
      .init("done_at", .integer(doneAt.milliseconds)),
    ]
    if !targets.isEmpty { members.append(.init("targets", .array(targets.map(\.json)))) }
    return JSONValue.object(members).bytes
  }
}

extension AccountOutcome.Target {
  fileprivate var json: JSONValue {
    var members: [JSONValue.Member] = [.init("name", .string(name)), .init("state", .string(state))]
    for (name, number) in [("before", before), ("affected", affected), ("after", after)] {
      if let number { members.append(.init(name, .integer(number))) }
    }
    return .object(members)
  }
}
