import JSON

/// A notification as it came, with nothing in it believed: anybody can have sent it.
package struct UnverifiedNotification: Sendable {
  /// The largest body that is looked at. Apple's have less than 1 KiB; several events in one would still fit.
  package static let maximumBodySize = 16_384
  private static let bodyLimits = JSONLimits(bytes: maximumBodySize, depth: 8, members: 32)
  /// Apple sends none. `JWT` says nothing, and the others are what RFC 8417 §2.3 would have it be.
  private static let types = ["jwt", "secevent+jwt", "application/secevent+jwt"]

  /// The JWS that it consists of.
  let jws: CompactJWS

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

  /// A notification that was taken out of its body before.
  init(jws: [UInt8]) throws(Refusal) { self.jws = try CompactJWS(jws, types: Self.types) }
}
