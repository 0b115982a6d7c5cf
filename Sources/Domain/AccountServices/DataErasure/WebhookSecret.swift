import AccountEvents
import Cryptography

/// The secret that we share with a service, to sign what we ask of it and to verify what it answers: the symmetric
/// scheme of Standard Webhooks 1.0 (`v1`, HMAC-SHA256). Its description is redacted.
package struct WebhookSecret: Sendable, CustomStringConvertible {
  private let mac: HMAC

  /// Reads `whsec_…`: base64 of 24 to 64 bytes, as the specification wants them. Nil for anything else.
  package init?(_ text: String) {
    guard text.hasPrefix("whsec_") else { return nil }
    let digits = text.dropFirst("whsec_".count)
    guard digits.utf8.count.isMultiple(of: 4), let key = Base64URL.decode(String(digits).base64URL),
      24...64 ~= key.count
    else { return nil }
    mac = HMAC(key: key)
  }

  /// Says that there is a secret, and not which.
  package var description: String { "«secret»" }

  /// `v1,` and the signature of the message: its id, when it was sent (seconds since 1970), and its body.
  func signature(id: String, seconds: Int64, body: [UInt8]) -> String {
    "v1,\(Base64URL.encode(digest(id: id, seconds: seconds, body: body).bytes).base64)"
  }

  /// Whether one of the signatures, which blanks separate, is the message's. Others may be of other schemes.
  func verifies(_ signatures: String, id: String, seconds: Int64, body: [UInt8]) -> Bool {
    let own = digest(id: id, seconds: seconds, body: body)
    return signatures.split(separator: " ").prefix(16).contains { signature in
      guard signature.hasPrefix("v1,"), let bytes = Base64URL.decode(String(signature.dropFirst(3)).base64URL),
        let digest = SHA256Digest(bytes: bytes)
      else { return false }
      return own.matches(digest)
    }
  }

  private func digest(id: String, seconds: Int64, body: [UInt8]) -> SHA256Digest {
    mac.code(for: Array("\(id).\(seconds).".utf8) + body)
  }
}

extension String {
  /// Base64 with its padding, from base64url.
  fileprivate var base64: String {
    let text = map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
    return String(text) + String(repeating: "=", count: (4 - count % 4) % 4)
  }

  /// Base64url from base64: something that neither has where this has what base64 has not.
  fileprivate var base64URL: String {
    var text = self[...]
    for _ in 0..<2 where text.hasSuffix("=") && utf8.count.isMultiple(of: 4) { text = text.dropLast() }
    return String(text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 == "-" || $0 == "_" ? "=" : $0 })
  }
}
