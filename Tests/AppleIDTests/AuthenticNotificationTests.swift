import AccountEvents
import AppleID
import Cryptography
import TestSupport
import Testing

/// What Apple itself signed is believed, and nothing else that looks like it.
@Suite struct AuthenticNotificationTests {
  let keys: AppleKeySet

  init() throws {
    let text = try Authentic.keys()
    keys = try unsafe AppleKeySet(reading: text.span.bytes)
  }

  @Test(arguments: Authentic.notifications)
  func isBelievedAtItsTime(authentic: Authentic) throws {
    let notification = try #require(try verdict(on: authentic.jws, authentic).notification)
    #expect(notification.team == Forge.team)
    #expect(notification.audience.text == authentic.audience)
    #expect(notification.id.text.utf8.count == 22)
    #expect(String(decoding: notification.jws, as: UTF8.self) == authentic.jws)
    #expect(notification.quarantined.isEmpty)
    let event = try #require(notification.known.first)
    #expect(notification.known.count == 1)
    #expect(event.id == notification.id)
    #expect(event.subject.text.utf8.count == 44)
    #expect(.seconds(5)...(.seconds(30)) ~= notification.issuedAt - event.occurredAt)
    switch event.kind {
    case .consentRevoked: #expect(authentic.type == "consent-revoked")
    case .emailDisabled(let address, let isPrivate):
      #expect(authentic.type == "email-disabled")
      #expect(address.text == "zdfu7jtuus@privaterelay.appleid.com" && isPrivate)
    default: Issue.record("\(event.kind)")
    }
  }

  /// In each of its 64 ways for header and signature and payload: every character of the JWS, one bit changed.
  @Test(arguments: Authentic.notifications)
  func oneChangedBitAnywhereIsRefused(authentic: Authentic) throws {
    let jws = Array(authentic.jws.utf8)
    for place in jws.indices {
      var changed = jws
      changed[place] ^= 1
      let verdict = try verdict(on: String(decoding: changed, as: UTF8.self), authentic)
      #expect(verdict.notification == nil, "byte \(place)")
    }
  }

  /// One byte of what the parts stand for, changed and encoded again: the signature alone has to notice.
  @Test(arguments: Authentic.notifications, 0..<3)
  func oneChangedByteInAPartIsRefused(authentic: Authentic, part: Int) throws {
    let parts = authentic.jws.split(separator: ".").map(String.init)
    let bytes = try #require(Base64URL.decode(parts[part]))
    for place in bytes.indices {
      var changed = bytes
      changed[place] ^= 0x01
      var changedParts = parts
      changedParts[part] = Base64URL.encode(changed)
      let verdict = try verdict(on: changedParts.joined(separator: "."), authentic)
      switch part {
      case 0: #expect(verdict.notification == nil, "byte \(place)")  // no header, another key or a wrong signature
      default: #expect(verdict.refusal == .wrongSignature, "byte \(place)")
      }
    }
  }

  @Test func anotherKeyOfApplesDoesNotVerifyIt() throws {
    let authentic = Authentic.notifications[0]
    let parts = authentic.jws.split(separator: ".").map(String.init)
    for id in keys.keyIDs where id.text != "fh6Bs8C" {
      let header = Base64URL.encode(Array(#"{"kid":"\#(id)","alg":"RS256"}"#.utf8))
      let verdict = try verdict(on: "\(header).\(parts[1]).\(parts[2])", authentic)
      #expect(verdict.refusal == .wrongSignature)
    }
  }

  private func verdict(on jws: String, _ authentic: Authentic) throws -> Verdict {
    let verifier = NotificationVerifier(
      issuer: "https://appleid.apple.com", teams: [try #require(ClientID(authentic.audience)): Forge.team],
      clockTolerance: .zero)
    let body = Forge.body(jws)
    return try unsafe verifier.verify(
      body.span.bytes, at: #require(Timestamp(seconds: authentic.moment)), keys: keys)
  }
}
