extension AccountEvent {
  /// The value of the event's record, described by `schemas/account-event.v1.json`.
  ///
  /// The identifiers need no escape (their types refuse what would), so their bytes go in as they are.
  var json: [UInt8] {
    var json: [UInt8] = []
    json.reserveCapacity(256 + subject.text.utf8.count + audience.text.utf8.count)
    json.append(#"{"id":""#, id.text)
    json.append(#"","type":""#, kind.name)
    json.append(#"","team":""#, team.text)
    json.append(#"","audience":""#, audience.text)
    json.append(#"","sub":""#, subject.text)
    json.append(#"","event_time":"#, occurredAt.milliseconds)
    json.append(#","issued_at":"#, issuedAt.milliseconds)
    switch kind {
    case .emailEnabled(let address, let isPrivate), .emailDisabled(let address, let isPrivate):
      json.append(#","email":"#, escaping: address.text)
      json.append(contentsOf: (isPrivate ? #","is_private_email":true}"# : #","is_private_email":false}"#).utf8)
    case .consentRevoked, .accountDelete, .accountDeletionRequested, .credentialInvalid, .accountTransferred:
      json.append(UInt8(ascii: "}"))
    }
    return json
  }
}
