import AccountEvents
import Cryptography

/// The secret that we share with a service, to sign what we ask of it and to verify what it answers: the symmetric
/// scheme of Standard Webhooks 1.0 (`v1`, HMAC-SHA256). Its description is redacted.
package struct WebhookSecret: Sendable, CustomStringConvertible {
  private let mac: HMAC

  /// Reads `whsec_…`: base64 of 24 to 64 bytes, as the specification wants them. Nil for anything else.
  package init?(_ text: String) {
    guard text.hasPrefix("whsec_") else { return nil }
    guard let key = Base64.decode(String(text.dropFirst("whsec_".count))), 24...64 ~= key.count else { return nil }
    mac = HMAC(key: key)
  }

  /// Says that there is a secret, and not which.
  package var description: String { "«secret»" }

  /// `v1,` and the signature of the message: its id, when it was sent (seconds since 1970), and its body.
  func signature(id: String, seconds: Int64, body: [UInt8]) -> String {
    "v1,\(Base64.encode(digest(id: id, seconds: seconds, body: body).bytes))"
  }

  /// Whether one of the signatures, which blanks separate, is the message's. Others may be of other schemes.
  func verifies(_ signatures: String, id: String, seconds: Int64, body: [UInt8]) -> Bool {
    let own = digest(id: id, seconds: seconds, body: body)
    return signatures.split(separator: " ").prefix(16).contains { signature in
      guard signature.hasPrefix("v1,"), let bytes = Base64.decode(String(signature.dropFirst(3))),
        let digest = SHA256Digest(bytes: bytes)
      else { return false }
      return own.matches(digest)
    }
  }

  private func digest(id: String, seconds: Int64, body: [UInt8]) -> SHA256Digest {
    mac.code(for: Array("\(id).\(seconds).".utf8) + body)
  }
}
