import AccountEvents
import TestSupport
import Testing

@Suite struct DecodingTests {
  private func decode(_ json: String) throws(EventDecodingError) -> AccountEvent {
    try AccountEvent(decoding: [UInt8](json.utf8))
  }

  @Test(arguments: Examples.kinds)
  func readsItsGoldenRecord(_ kind: AccountEvent.Kind) throws {
    let golden = try Repository.bytes("Tests/AccountEventsTests/Golden/\(kind.name).record")
    let value = try #require(golden.split(separator: UInt8(ascii: "\n")).last)
    #expect(try AccountEvent(decoding: [UInt8](value)) == Examples.event(kind))
  }

  @Test func readsBackAnAddressThatNeededEscapes() throws {
    let event = Examples.event(.emailDisabled(try #require(RelayAddress(#""a\b"@例え.jp"#)), isPrivate: false))
    #expect(try AccountEvent(decoding: EventRecord(event, jws: nil).value) == event)
  }

  static let members =
    #""team":"A1B2C3D4E5","audience":"com.example.app","sub":"\#(Examples.subject.text)","event_time":1657617063012,"issued_at":1657617092000"#

  @Test func passesOverWhatItDoesNotKnow() throws {
    let json =
      #" { "id" : "S25cB0PbHs6y97gYYmgydQ" , "later":[{"a":null}], "type":"consent-revoked","email":"a@b",\#(Self.members)}"#
    #expect(try decode(json) == Examples.event(.consentRevoked))
  }

  @Test(arguments: [
    ("", EventDecodingError.Code.malformedJSON),
    ("[]", .malformedJSON),
    ("{", .malformedJSON),
    ("{}", .malformedMember),
    ("{} {}", .malformedJSON),
    (#"{"id":"a","type":"consent-revoked",\#(members),"id":"b"}"#, .malformedJSON),
    (#"{"id":"a","type":"consent-revoked",\#(members),"x":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}"#, .malformedJSON),
    (#"{"id":"a b","type":"consent-revoked",\#(members)}"#, .malformedMember),
    (#"{"id":1,"type":"consent-revoked",\#(members)}"#, .malformedMember),
    (#"{"type":"consent-revoked",\#(members)}"#, .malformedMember),
    (#"{"id":"a",\#(members)}"#, .malformedMember),
    (#"{"id":"a","type":"email-enabled",\#(members)}"#, .malformedMember),
    (#"{"id":"a","type":"email-enabled","email":"a@b",\#(members)}"#, .malformedMember),
    (#"{"id":"a","type":"email-enabled","email":"a@b","is_private_email":"true",\#(members)}"#, .malformedMember),
    (#"{"id":"a","type":"account-merged",\#(members)}"#, .unknownType),
  ])
  func refusesWhatIsNoEvent(_ json: String, _ code: EventDecodingError.Code) {
    #expect {
      try decode(json)
    } throws: {
      ($0 as? EventDecodingError)?.code == code
    }
  }

  @Test func saysNothingOfTheValueItRefuses() {
    let json = #"{"id":"a","type":"email-enabled","email":"secret","is_private_email":true,\#(Self.members)}"#
    #expect {
      try decode(json)
    } throws: {
      "\($0)" == "malformed-member: email"
    }
  }
}
