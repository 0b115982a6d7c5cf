import AccountEvents
import Cryptography
import Glibc
import JSON

/// A notification taken apart, with nothing in it believed: anybody can have sent it.
package struct UnverifiedNotification: Sendable {
  /// The largest body that is looked at. Apple's have less than 1 KiB; several events in one would still fit.
  package static let maximumBodySize = 16_384
  private static let bodyLimits = JSONLimits(bytes: maximumBodySize, depth: 8, members: 32)

  /// The compact JWS as it was received.
  let jws: [UInt8]
  /// The key that the sender claims to have signed with.
  let keyID: KeyID
  /// The claims, decoded but not read.
  let payload: [UInt8]
  /// The signature, decoded.
  let signature: [UInt8]
  /// How many bytes of the JWS are signed: header, dot and payload.
  let signedCount: Int

  /// Takes the body of a POST apart: `{"payload":"<compact JWS>"}`. Further members are ignored, as long as they are JSON.
  package init(body: RawSpan) throws(Refusal) {
    guard body.byteCount <= Self.maximumBodySize else { throw .bodyTooLarge }
    var payload: [UInt8]?
    do {
      try JSONReader.read(body, Self.bodyLimits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          if name == "payload", try value.kind == .string { payload = try value.readStringBytes() }
        }
      }
    } catch {
      throw .malformedBody
    }
    guard let payload else { throw .payloadMissing }
    try self.init(jws: payload)
  }

  /// Takes a compact JWS (RFC 7515 §7.1) apart.
  init(jws: [UInt8]) throws(Refusal) {
    guard
      let first = Self.dot(in: jws, from: 0), let last = Self.dot(in: jws, from: first + 1),
      Self.dot(in: jws, from: last + 1) == nil
    else { throw .notThreeParts }
    let header = try Self.decode(jws, 0..<first)
    payload = try Self.decode(jws, (first + 1)..<last)
    signature = try Self.decode(jws, (last + 1)..<jws.count)
    keyID = try JWSHeader(reading: header).keyID
    signedCount = last
    self.jws = jws
  }

  /// Whether the key that the header names signed these very bytes.
  func isSigned(by key: RSAPublicKey) -> Bool {
    unsafe key.verifiesRS256(signature.span.bytes, of: jws.span.bytes.extracting(0..<signedCount))
  }

  private static func dot(in jws: [UInt8], from start: Int) -> Int? {
    unsafe jws.withUnsafeBytes { bytes in
      guard
        let base = bytes.baseAddress,
        let dot = unsafe memchr(base + start, CInt(UInt8(ascii: ".")), bytes.count - start)
      else { return nil }
      return unsafe base.distance(to: UnsafeRawPointer(dot))
    }
  }

  private static func decode(_ jws: [UInt8], _ part: Range<Int>) throws(Refusal) -> [UInt8] {
    guard !part.isEmpty, let bytes = unsafe Base64URL.decode(jws.span.bytes.extracting(part)) else {
      throw .malformedEncoding
    }
    return bytes
  }
}
