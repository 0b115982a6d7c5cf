extension AccountOutcome {
  /// The value of the outcome's record, described by `schemas/account-outcome.v1.json`.
  var json: [UInt8] {
    var json: [UInt8] = []
    json.reserveCapacity(320 + 128 * targets.count)
    json.append(contentsOf: #"{"account":""#.utf8)
    account.appendDigits(to: &json)
    json.append(#"","outcome":""#, name.rawValue)
    json.append(#"","cause":{"id":""#, cause.id.text)
    json.append(#"","type":"#, escaping: cause.type)
    json.append(#","event_time":"#, cause.occurredAt.milliseconds)
    json.append(#"},"consumer":"#, escaping: consumer)
    json.append(#","done_at":"#, doneAt.milliseconds)
    if !targets.isEmpty {
      json.append(contentsOf: #","targets":"#.utf8)
      for (index, target) in targets.enumerated() { target.append(after: index == 0 ? "[" : ",", to: &json) }
      json.append(UInt8(ascii: "]"))
    }
    json.append(UInt8(ascii: "}"))
    return json
  }
}

extension AccountOutcome.Target {
  fileprivate func append(after mark: Unicode.Scalar, to json: inout [UInt8]) {
    json.append(UInt8(ascii: mark))
    json.append(#"{"name":"#, escaping: name)
    json.append(#","state":"#, escaping: state)
    if let before { json.append(#","before":"#, before) }
    if let affected { json.append(#","affected":"#, affected) }
    if let after { json.append(#","after":"#, after) }
    json.append(UInt8(ascii: "}"))
  }
}
