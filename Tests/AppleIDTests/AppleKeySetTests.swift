import AccountEvents
import AppleID
import Cryptography
import JSON
import TestSupport
import Testing

@Suite struct AppleKeySetTests {
  @Test func readsTheSetThatAppleServed() throws {
    let text = try Authentic.keys()
    let keys = try unsafe AppleKeySet(reading: text.span.bytes)
    #expect(keys.keyIDs.map(\.text) == ["eXaunmL", "YuyXoY", "fh6Bs8C"])
    for id in keys.keyIDs { #expect(keys[id]?.bitCount == 2048) }
    #expect(keys[try #require(KeyID("other"))] == nil)
  }

  @Test func theSetWithoutKeysHasNone() throws {
    #expect(AppleKeySet.none.keyIDs.isEmpty)
    #expect(AppleKeySet.none[try #require(KeyID("a"))] == nil)
  }

  @Test func furtherMembersAreIgnored() throws {
    let keys = try read(["keys": [jwk(["x5t": "abc", "key_ops": ["verify"], "future": ["a": 1]])], "next": 1])
    #expect(keys.keyIDs.map(\.text) == ["fh6Bs8C"])
  }

  @Test(
    arguments: [
      ([:], .malformed), ([], .malformed), ("keys", .malformed), (["keys": .null], .malformed),
      (["keys": [:]], .malformed),
      (["keys": ["key"]], .malformed), (["keys": [[:], 1]], .malformed), (["Keys": []], .malformed),
      (["keys": []], .empty),
      (["keys": .array((0...16).map { jwk(["kid": .string("key\($0)")]) })], .tooManyKeys),
    ] as [(JSONValue, AppleKeySetError.Code)])
  func refusesWhatIsNoSet(set: JSONValue, code: AppleKeySetError.Code) {
    #expect { try read(set) } throws: {
      ($0 as? AppleKeySetError)?.code == code && ($0 as? AppleKeySetError)?.index == nil
    }
  }

  @Test(
    arguments: [
      (["kid": nil], .keyID), (["kid": 7], .keyID), (["kid": ""], .keyID), (["kid": "a b"], .keyID),
      (["kid": "é"], .keyID),
      (["kid": .string(String(repeating: "k", count: 65))], .keyID), (["kid": "good"], .duplicateKeyID),
      (["kid": "good", "kty": "EC"], .duplicateKeyID),
      (["n": nil], .number), (["n": 5], .number), (["n": "AQAB="], .number), (["n": "+/+/"], .number),
      (["n": ""], .number),
      (["n": "AA"], .number), (["e": nil], .number), (["e": "AQAB="], .number),
      (["e": "Aw"], .exponent), (["e": "AAEAAQ"], .exponent), (["e": ""], .exponent), (["e": "AQ"], .exponent),
      (["n": "_w"], .size), (["n": .string(modulus(bits: 2047))], .size), (["n": .string(modulus(bits: 1024))], .size),
      (["n": .string(modulus(bits: 8193))], .size),
    ] as [(KeyValuePairs<String, JSONValue?>, AppleKeySetError.Code)])
  func oneBadKeyRefusesTheWholeSet(change: KeyValuePairs<String, JSONValue?>, code: AppleKeySetError.Code) {
    let good = jwk(["kid": "good"])
    #expect { try read(["keys": [good, jwk(change)]]) } throws: {
      ($0 as? AppleKeySetError)?.code == code && ($0 as? AppleKeySetError)?.index == 1
    }
  }

  @Test(
    arguments: [
      ["kty": nil], ["kty": "EC"], ["kty": "rsa"], ["kty": "oct", "kid": nil], ["use": "enc"], ["use": 5],
      ["use": ""], ["alg": .null], ["alg": "RS512"], ["alg": "HS256"], ["alg": "none"],
      ["alg": "ES256", "n": nil, "kid": "a b"],
    ] as [KeyValuePairs<String, JSONValue?>])
  func aKeyThatIsNotForTheseSignaturesIsPassedOver(change: KeyValuePairs<String, JSONValue?>) throws {
    let foreign = jwk(change)
    for set in [[foreign, jwk(["kid": "good"])], [jwk(["kid": "good"]), foreign]] {
      let keys = try read(["keys": .array(set)])
      #expect(keys.keyIDs.map(\.text) == ["good"] && keys.foreignCount == 1)
    }
    #expect { try read(["keys": [foreign]]) } throws: { ($0 as? AppleKeySetError)?.code == .noneUsable }
  }

  @Test(
    arguments: [["use": nil], ["alg": nil], ["use": nil, "alg": nil]] as [KeyValuePairs<String, JSONValue?>])
  func aKeyNeedNotSayWhatItIsFor(change: KeyValuePairs<String, JSONValue?>) throws {
    let keys = try read(["keys": [jwk(change)]])
    #expect(keys.keyIDs.map(\.text) == ["fh6Bs8C"] && keys.foreignCount == 0)
  }

  @Test func aKidThatNamedAKeyOfOursNamesNoOtherKind() throws {
    let before = try read(["keys": [jwk(["kid": "a"]), jwk(["kid": "b"])]])
    let bytes = (["keys": [jwk(["kid": "a", "alg": "PS256"]), jwk(["kid": "b"])]] as JSONValue).bytes
    #expect {
      try unsafe AppleKeySet(reading: bytes.span.bytes, at: Forge.now, after: before)
    } throws: {
      // Its modulus is the old one: that another algorithm comes with it makes it another key all the same.
      ($0 as? AppleKeySetError)?.code == .changedKey && ($0 as? AppleKeySetError)?.index == 0
    }
  }

  @Test(arguments: [2048, 3072, 4096, 8192])
  func takesKeysOfTheseSizes(bits: Int) throws {
    let keys = try read(["keys": [jwk(["n": .string(modulus(bits: bits))])]])
    #expect(keys[try #require(KeyID("fh6Bs8C"))]?.bitCount == bits)
  }

  @Test(arguments: [
    "", "<html>", "{\"keys\":[", #"{"keys":[],"keys":[]}"#, #"{"keys":[{"kid":"a","kid":"b"}]}"#, "\u{feff}{}",
  ])
  func refusesWhatIsNoJSON(text: String) {
    let bytes = Array(text.utf8)
    #expect { try unsafe AppleKeySet(reading: bytes.span.bytes) } throws: {
      ($0 as? AppleKeySetError)?.code == .malformed && ($0 as? AppleKeySetError)?.cause != nil
    }
  }

  @Test func refusesMoreThanASetCanBe() {
    let bytes = [UInt8](repeating: UInt8(ascii: " "), count: 65_537)
    #expect { try unsafe AppleKeySet(reading: bytes.span.bytes) } throws: {
      ($0 as? AppleKeySetError)?.cause?.code == .tooLarge
    }
  }

  @Test func everyErrorSaysWhereAndWhat() {
    #expect { try read(["keys": [jwk(["kid": "good"]), jwk(["kid": nil])]]) } throws: {
      "\($0)" == "key 2 of the set has no usable kid"
    }
    #expect { try read(["keys": []]) } throws: { "\($0)" == "the set holds no key" }
  }

  private func read(_ set: JSONValue) throws(AppleKeySetError) -> AppleKeySet {
    let bytes = set.bytes
    return try unsafe AppleKeySet(reading: bytes.span.bytes)
  }
}

/// A good key, with some members replaced, removed (nil) or added.
private func jwk(_ changes: KeyValuePairs<String, JSONValue?>) -> JSONValue {
  Forge.changed(
    ["kty": "RSA", "kid": "fh6Bs8C", "use": "sig", "alg": "RS256", "n": .string(modulus(bits: 2048)), "e": "AQAB"],
    changes)
}

private func modulus(bits: Int) -> String {
  var bytes = [UInt8](repeating: 0xff, count: (bits + 7) / 8)
  bytes[0] = 0xff >> (bytes.count * 8 - bits)
  return Base64URL.encode(bytes)
}
