import AccountEvents
import Cryptography
import Glibc

/// A JWS in compact form (RFC 7515 §7.1) taken apart, with nothing in it believed: anybody can have sent it.
struct CompactJWS: Sendable {
  /// The JWS as it was received.
  let text: [UInt8]
  /// The key that the sender claims to have signed with.
  let keyID: KeyID
  /// The claims, decoded but not read.
  let payload: [UInt8]
  /// The signature, decoded.
  private let signature: [UInt8]
  /// How many bytes of the JWS are signed: header, dot and payload.
  private let signedCount: Int

  /// Takes a JWS apart. `types`: what `typ` may be beside missing, in lowercase.
  init(_ text: [UInt8], types: [String]) throws(Refusal) {
    guard
      let first = Self.dot(in: text, from: 0), let last = Self.dot(in: text, from: first + 1),
      Self.dot(in: text, from: last + 1) == nil
    else { throw .notThreeParts }
    let header = try Self.decode(text, 0..<first)
    payload = try Self.decode(text, (first + 1)..<last)
    signature = try Self.decode(text, (last + 1)..<text.count)
    keyID = try JWSHeader(reading: header, types: types).keyID
    signedCount = last
    self.text = text
  }

  /// Whether the key that the header names signed these very bytes.
  func isSigned(by key: RSAPublicKey) -> Bool {
    unsafe key.verifiesRS256(signature.span.bytes, of: text.span.bytes.extracting(0..<signedCount))
  }

  private static func dot(in text: [UInt8], from start: Int) -> Int? {
    unsafe text.withUnsafeBytes { bytes in
      guard
        let base = bytes.baseAddress,
        let dot = unsafe memchr(base + start, CInt(UInt8(ascii: ".")), bytes.count - start)
      else { return nil }
      return unsafe base.distance(to: UnsafeRawPointer(dot))
    }
  }

  private static func decode(_ text: [UInt8], _ part: Range<Int>) throws(Refusal) -> [UInt8] {
    guard !part.isEmpty, let bytes = unsafe Base64URL.decode(text.span.bytes.extracting(part)) else {
      throw .malformedEncoding
    }
    return bytes
  }
}
