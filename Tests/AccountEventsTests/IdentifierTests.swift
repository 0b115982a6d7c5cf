import AccountEvents
import Testing

@Suite struct IdentifierTests {
  @Test(arguments: ["A1B2C3D4E5", "0000000000"])
  func takesATeamID(_ text: String) throws { #expect(try #require(TeamID(text)).text == text) }

  @Test(arguments: ["", "A1B2C3D4E", "A1B2C3D4E5F", "a1b2c3d4e5", "A1B2C3/4E5", "A1B2C3D4É", "A1B2C3D4E\n"])
  func refusesWhatIsNoTeamID(_ text: String) { #expect(TeamID(text) == nil) }

  static let notVisible = ["", "a b", "a\u{0}", "a\nb", "a\u{7f}", "é", "a\"b", "a\\b", "\u{202e}a"]

  @Test(arguments: notVisible)
  func refusesAnIdentifierThatIsNotVisibleASCII(_ text: String) {
    #expect(ClientID(text) == nil)
    #expect(AppleSubject(text) == nil)
    #expect(EventID(text) == nil)
  }

  @Test func boundsAnIdentifiersLength() {
    #expect(ClientID(String(repeating: "a", count: 255)) != nil)
    #expect(ClientID(String(repeating: "a", count: 256)) == nil)
    #expect(AppleSubject(String(repeating: "a", count: 255)) != nil)
    #expect(AppleSubject(String(repeating: "a", count: 256)) == nil)
    #expect(EventID(String(repeating: "a", count: 128)) != nil)
    #expect(EventID(String(repeating: "a", count: 129)) == nil)
  }

  @Test func tellsApartTheEventsOfOneNotification() throws {
    let jti = try #require(EventID("S25cB0PbHs6y97gYYmgydQ"))
    #expect(EventID(jti: jti, index: 1)?.text == "S25cB0PbHs6y97gYYmgydQ.1")
    let longest = try #require(EventID(String(repeating: "a", count: 128)))
    #expect(EventID(jti: longest, index: 0) == nil)
  }

  @Test(arguments: ["a@b", "zdfu7jtuus@privaterelay.appleid.com", "\"a\\b\"@c", "ü@例え.jp"])
  func takesAnAddress(_ text: String) throws { #expect(try #require(RelayAddress(text)).text == text) }

  @Test(arguments: ["", "ab", "@ab", "ab@", "a b@c", "a@b\n", "a@b\u{0}", "a@b\u{85}", "abc"])
  func refusesWhatIsNoAddress(_ text: String) { #expect(RelayAddress(text) == nil) }

  @Test func boundsAnAddressesLength() {
    #expect(RelayAddress(String(repeating: "a", count: 318) + "@b") != nil)
    #expect(RelayAddress(String(repeating: "a", count: 319) + "@b") == nil)
  }

  @Test func printsNoPersonalData() throws {
    let subject = try #require(AppleSubject("000768.6166f031167141e695698239959f591a.1521"))
    let address = try #require(RelayAddress("a@privaterelay.appleid.com"))
    #expect("\(subject) \(address)" == "«subject» «address»")
  }
}
