package import AccountEvents
import AccountServices
package import AccountStore
import AppleSimulator
import Cryptography
import JSON
package import Kafka

/// Signs any event as Apple does, with a key of its own.
package struct EventSigner: Sendable {
  private let key: SigningKey
  /// The key, as it stands on its topic.
  package let written: AppleSigningKey

  /// A signer; with the name of another's key, one who only says that it is the same.
  package init(named id: KeyID? = nil) throws {
    let generated = try SigningKey.generate()
    key = SigningKey(kid: id?.text ?? generated.kid, key: generated.privateKey)
    guard let id = KeyID(key.kid),
      let written = AppleSigningKey(
        id: id, modulus: Base64URL.encode(try key.privateKey.modulus), firstSeen: AccountEvent.sample(0).issuedAt)
    else { preconditionFailure("a key of 2048 bits") }
    self.written = written
  }

  /// The event as the ingress puts it onto the topic once Apple has signed it: in whole seconds.
  package func record(of event: AccountEvent) throws -> KafkaRecord {
    let event = Self.inWholeSeconds(event)
    return KafkaRecord(EventRecord(event, jws: try jws(of: event)))
  }

  /// A record of one event that holds what Apple signed of another.
  package func record(of event: AccountEvent, holding other: AccountEvent) throws -> KafkaRecord {
    KafkaRecord(EventRecord(Self.inWholeSeconds(event), jws: try jws(of: Self.inWholeSeconds(other))))
  }

  /// The record of the signer's key.
  package var keyRecord: KafkaRecord { KafkaRecord(EventRecord(written)) }

  private static func inWholeSeconds(_ event: AccountEvent) -> AccountEvent {
    guard let issuedAt = Timestamp(seconds: event.issuedAt.milliseconds / 1000) else { return event }
    return AccountEvent(
      id: event.id, team: event.team, audience: event.audience, subject: event.subject, kind: event.kind,
      occurredAt: event.occurredAt, issuedAt: issuedAt)
  }

  private func jws(of event: AccountEvent) throws -> [UInt8] {
    var members: [JSONValue.Member] = [
      .init("type", .string(event.kind.name)), .init("sub", .string(event.subject.text)),
      .init("event_time", .integer(event.occurredAt.milliseconds)),
    ]
    switch event.kind {
    case .emailEnabled(let address, let isPrivate), .emailDisabled(let address, let isPrivate):
      members.append(.init("email", .string(address.text)))
      members.append(.init("is_private_email", .string(isPrivate ? "true" : "false")))
    case .consentRevoked, .accountDelete, .accountDeletionRequested, .credentialInvalid, .accountTransferred: break
    }
    let issued = event.issuedAt.milliseconds / 1000
    let claims: JSONValue = [
      "iss": .string(AppleNotification.appleIssuer), "aud": .string(event.audience.text),
      "exp": .integer(issued + 86_400), "iat": .integer(issued), "jti": .string(event.id.text),
      "events": .string(String(decoding: JSONValue.object(members).bytes, as: UTF8.self)),
    ]
    let signed =
      Base64URL.encode(Array(#"{"kid":"\#(key.kid)","alg":"RS256"}"#.utf8)) + "." + Base64URL.encode(claims.bytes)
    return Array((signed + "." + Base64URL.encode(try key.privateKey.signRS256(Array(signed.utf8)))).utf8)
  }
}

extension KafkaRecord {
  /// The record of a deletion that somebody has asked for, vouched for with the key of `store`.
  package static func request(
    _ event: AccountEvent, by person: String? = nil, because reason: String? = nil, _ store: any AccountStore
  ) -> KafkaRecord {
    KafkaRecord(EventRecord(event, requestedBy: person, because: reason, code: store.code))
  }
}
