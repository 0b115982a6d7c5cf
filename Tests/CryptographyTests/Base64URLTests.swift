import Cryptography
import Foundation
import Testing

@Suite struct Base64URLTests {
  /// RFC 4648 §10 in the other alphabet, and the characters in which the alphabets differ.
  @Test(
    arguments: [
      ("", []), ("Zg", Array("f".utf8)), ("Zm8", Array("fo".utf8)), ("Zm9v", Array("foo".utf8)),
      ("Zm9vYg", Array("foob".utf8)), ("Zm9vYmE", Array("fooba".utf8)), ("Zm9vYmFy", Array("foobar".utf8)),
      ("-_-_", [0xfb, 0xff, 0xbf]), ("_w", [0xff]),
    ] as [(String, [UInt8])])
  func readsAndWritesTheExamples(text: String, bytes: [UInt8]) {
    #expect(Base64URL.decode(text) == bytes)
    #expect(Base64URL.encode(bytes) == text)
    var behind = Array("id:".utf8)
    unsafe Base64URL.append(bytes.span.bytes, to: &behind)
    #expect(String(decoding: behind, as: UTF8.self) == "id:" + text)
  }

  @Test(arguments: [
    "A", "AAAAA",  // no encoder makes this length
    "Zg==", "Zm8=", "=", "Zm9v====",  // padding
    "Zh", "Zn", "Z_", "Zm9", "Zm-", "Zm9vYh",  // unused bits are not zero
    "+/+/", "Zm9v\n", "\nZm9v", "Zm 9", "Zm9v YmFy", "Zm.v", "Zm9\u{0}", "Zm\u{e9}", "💥", "@AAA", "[AAA", "`AAA",
    "{AAA", "/AAA", ":AAA",
  ])
  func refusesWhatIsNotStrict(text: String) {
    #expect(Base64URL.decode(text) == nil)
  }

  @Test func everyOtherByteIsRefusedInEveryPlace() {
    let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    for byte in UInt8.min...UInt8.max {
      for place in 0..<8 {
        var text = Array("AAAAAAAA".utf8)
        text[place] = byte
        let bytes = unsafe Base64URL.decode(text.span.bytes)
        #expect((bytes != nil) == alphabet.contains(byte), "byte \(byte) in place \(place)")
      }
    }
  }

  @Test func agreesWithFoundationOnRandomBytes() throws {
    for count in 0..<200 {
      let bytes = try SecureRandom.bytes(count)
      let text = Base64URL.encode(bytes)
      let padded = text.replacing("-", with: "+").replacing("_", with: "/")
      #expect(Data(base64Encoded: padded + String(repeating: "=", count: (4 - padded.count % 4) % 4)) == Data(bytes))
      #expect(Base64URL.decode(text) == bytes)
    }
  }
}
