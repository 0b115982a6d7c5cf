import AccountEvents
import TestSupport
import Testing

@Suite struct SigningKeyTests {
  private static let key = Examples.signingKey
  private static let modulus = key.modulus

  private func decode(_ json: String) throws(EventDecodingError) -> AppleSigningKey {
    try AppleSigningKey(decoding: [UInt8](json.utf8))
  }

  @Test func readsItsGoldenRecord() throws {
    let golden = try Repository.bytes("Tests/AccountEventsTests/Golden/signing-key.record")
    let value = try #require(golden.split(separator: UInt8(ascii: "\n")).last)
    #expect(try AppleSigningKey(decoding: [UInt8](value)) == Self.key)
  }

  @Test func isTheSameWheneverItWasSeen() throws {
    let later = Self.key.seen(at: Examples.issuedAt + .seconds(1))
    #expect(later != Self.key && later.isSame(as: Self.key))
    let other = AppleSigningKey(id: try #require(KeyID("other")), modulus: Self.modulus, firstSeen: Examples.issuedAt)
    #expect(try !#require(other).isSame(as: Self.key))
  }

  /// Only one spelling of a number is one, and only of a size that is believed.
  @Test(arguments: [
    "", "A", String(repeating: "_", count: 341), String(repeating: "_", count: 342),
    String(repeating: "f", count: 341) + "g", String(repeating: "_", count: 341) + "=",
    String(repeating: "_", count: 340) + "/w", "AP" + String(repeating: "_", count: 340),
    String(repeating: "_", count: 342) + "9", String(repeating: "_", count: 1366), String(repeating: "_", count: 1368),
  ])
  func takesNoModulusThatIsNone(modulus: String) {
    #expect(AppleSigningKey(id: Self.key.id, modulus: modulus, firstSeen: Examples.issuedAt)?.modulus == nil)
  }

  @Test(arguments: [
    String(repeating: "_", count: 341) + "w", "gA" + String(repeating: "A", count: 340),
    String(repeating: "_", count: 342) + "8", String(repeating: "_", count: 1365) + "w",
  ])
  func takesAModulusOfEachSize(modulus: String) {
    #expect(AppleSigningKey(id: Self.key.id, modulus: modulus, firstSeen: Examples.issuedAt)?.modulus == modulus)
  }

  @Test func passesOverWhatItDoesNotKnow() throws {
    let json =
      #" { "kid" : "fh6Bs8C","later":[{"a":null}],"alg":"RS256","e":"AQAB","use":"sig","n":"\#(Self.modulus)","# + "\n"
      + #""kty":"RSA","first_seen":1657617092000}"#
    #expect(try decode(json) == Self.key)
  }

  @Test(arguments: [
    ("", EventDecodingError.Code.malformedJSON, ""), ("[]", .malformedJSON, ""), ("{", .malformedJSON, ""),
    ("{}", .malformedMember, "kty"), (replaced(#""RSA""#, #""EC""#), .malformedMember, "kty"),
    (replaced(#""RSA""#, "1"), .malformedMember, ""), (replaced("sig", "enc"), .malformedMember, "use"),
    (replaced("RS256", "none"), .malformedMember, "alg"), (replaced("AQAB", "Aw"), .malformedMember, "e"),
    (replaced("fh6Bs8C", "fh 6"), .malformedMember, "kid"),
    (replaced("1657617092000", "-1"), .malformedMember, "first_seen"),
    (replaced("1657617092000", "1.5"), .malformedMember, ""), (replaced(modulus, "AQAB"), .malformedMember, "n"),
    (replaced(#""e":"AQAB""#, #""e":"AQAB","e":"AQAB""#), .malformedJSON, ""),
  ])
  func refusesWhatIsNoKey(_ json: String, _ code: EventDecodingError.Code, _ detail: String) {
    #expect {
      try decode(json)
    } throws: {
      let error = $0 as? EventDecodingError
      return error?.code == code && (detail.isEmpty || error?.detail == detail)
    }
  }

  private static func replaced(_ part: String, _ other: String) -> String {
    let json = String(decoding: EventRecord(key).value, as: UTF8.self)
    return json.split(separator: part, omittingEmptySubsequences: false).joined(separator: other)
  }
}
