extension AccountOutcome {
  /// The value of the outcome's record, described by `schemas/account-outcome.v1.json`.
  var json: [UInt8] {
    var json: [UInt8] = []
    json.reserveCapacity(320 + 128 * targets.count)
    json.append(contentsOf: #"{"account":""#.utf8)
    account.appendDigits(to: &json)
    if let key = account.key { json.append(#"","account_key":""#, key.description) }
    json.append(#"","outcome":""#, name.rawValue)
    if let reason { json.append(#"","reason":""#, reason.rawValue) }
    json.append(#"","cause":{"id":""#, cause.id.text)
    json.append(#"","type":"#, escaping: cause.type)
    json.append(#","event_time":"#, cause.occurredAt.milliseconds)
    json.append(#"},"consumer":"#, escaping: consumer)
    json.append(#","done_at":"#, doneAt.milliseconds)
    if !targets.isEmpty {
      json.append(contentsOf: #","targets":"#.utf8)
      Target.append(targets, to: &json)
    }
    json.append(UInt8(ascii: "}"))
    return json
  }
}

extension AccountOutcome.Target {
  /// Targets as compact JSON, as a ledger keeps them.
  package static func text(_ targets: [Self]) -> String {
    var json: [UInt8] = []
    append(targets, to: &json)
    return String(decoding: json, as: UTF8.self)
  }

  fileprivate static func append(_ targets: [Self], to json: inout [UInt8]) {
    json.append(UInt8(ascii: "["))
    for (index, target) in targets.enumerated() {
      if index > 0 { json.append(UInt8(ascii: ",")) }
      target.append(to: &json)
    }
    json.append(UInt8(ascii: "]"))
  }

  private func append(to json: inout [UInt8]) {
    json.append(#"{"name":"#, escaping: name)
    json.append(#","state":"#, escaping: state)
    if let before { json.append(#","before":"#, before) }
    if let affected { json.append(#","affected":"#, affected) }
    if let after { json.append(#","after":"#, after) }
    if let note { json.append(#","note":"#, escaping: note) }
    json.append(UInt8(ascii: "}"))
  }
}
