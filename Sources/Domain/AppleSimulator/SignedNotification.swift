package import Cryptography

/// A notification as it goes over the wire.
package struct SignedNotification: Sendable {
  /// What was signed.
  package let notification: AppleNotification
  /// The JWS in compact form.
  package let jws: String
  /// What is posted: `{"payload":"…"}`, unless a fault has it otherwise.
  package let body: [UInt8]

  /// Signs with Apple's `key`; a forger has a key too, for the faults that need one.
  package init(_ notification: AppleNotification, by key: SigningKey, forger: RSAPrivateKey) throws(CryptographyError) {
    var draft = Draft(notification, kid: key.kid)
    for fault in notification.faults { draft.apply(fault, to: notification) }
    self.notification = notification
    jws = try draft.signed(by: key.privateKey, forger: forger)
    body = draft.body(around: jws)
  }
}

extension Draft {
  fileprivate func signed(by key: RSAPrivateKey, forger: RSAPrivateKey) throws(CryptographyError) -> String {
    var header = header
    if signature == .embeddedKey { header["jwk"] = try SigningKey(kid: "forger", key: forger).jwk().json }
    var claims = claimsJSON
    if encoding == .claimsCutOff { claims.removeLast(8) }
    let input = encoded(header.json) + "." + encoded(claims)
    let bytes = [UInt8](input.utf8)
    switch signature {
    case .apple: return joined(input, try key.signRS256(bytes))
    case .forged, .embeddedKey: return joined(input, try forger.signRS256(bytes))
    case .none: return joined(input, [])
    case .hmac: return joined(input, HMAC(key: try key.modulus).code(for: bytes).bytes)
    case .ofOtherClaims:
      var changed = self
      changed.claims["exp"] = "4102444800"
      return joined(encoded(header.json) + "." + encoded(changed.claimsJSON), try key.signRS256(bytes))
    }
  }

  private func encoded(_ json: String) -> String { encoded([UInt8](json.utf8)) }

  private func encoded(_ bytes: [UInt8]) -> String {
    let text = Base64URL.encode(bytes)
    return encoding == .padded ? text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4) : text
  }

  private func joined(_ input: String, _ signature: [UInt8]) -> String {
    encoding == .twoParts ? input : input + "." + encoded(signature)
  }

  fileprivate func body(around jws: String) -> [UInt8] {
    let text =
      switch body {
      case .payload: #"{"payload":"\#(jws)"}"#
      case .empty: ""
      case .form: "payload=\(jws)"
      case .withoutPayload: #"{"signedPayload":"\#(jws)"}"#
      case .payloadTwice: #"{"payload":"\#(jws)","payload":"\#(jws)"}"#
      case .tenMegabytes: #"{"payload":"\#(String(repeating: "A", count: 10_000_000))"}"#
      }
    return [UInt8](text.utf8)
  }
}
