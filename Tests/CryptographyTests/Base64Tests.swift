import Cryptography
import Testing

@Suite struct Base64Tests {
  /// RFC 4648, section 10, and the two characters that base64url has others for.
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"), ("~~~???", "fn5+Pz8/"),
  ])
  func writesAndReads(_ plain: String, _ text: String) {
    #expect(Base64.encode(Array(plain.utf8)) == text)
    #expect(Base64.decode(text) == Array(plain.utf8))
  }

  @Test(arguments: [
    "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zh==", "Zm9=", "Zm9v\n", " Zm9v", "Zm9vZg==Zm9v", "fn5-Pz8_", "Zm 9v",
    "Zm9vZ", "Zm\u{e9}v",
  ])
  func readsNothingElse(_ text: String) { #expect(Base64.decode(text) == nil) }
}
