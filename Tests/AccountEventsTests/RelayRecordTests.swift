import AccountEvents
import Foundation
import TestSupport
import Testing

@Suite struct RelayRecordTests {
  private let record = Examples.relay(.disabled, to: Examples.address)

  @Test(arguments: [
    ("email-relay", Examples.relay(.disabled, to: Examples.address)),
    ("email-relay-without-address", Examples.relay(.enabled, to: nil)),
  ])
  func readsItsGoldenRecord(_ name: String, _ record: RelayRecord) throws {
    let golden = try Repository.bytes("Tests/AccountEventsTests/Golden/\(name).record")
    let value = try #require(golden.split(separator: UInt8(ascii: "\n")).last)
    #expect(try RelayRecord(decoding: [UInt8](value)) == record)
  }

  @Test(arguments: [
    ("disabled", "paused", EventDecodingError.Code.unknownType, "status"),
    (#""since":"#, #""since":-"#, .malformedMember, "since"), (#""team":"A"#, #""team":"a"#, .malformedMember, "team"),
    (#""event""#, #""cause""#, .malformedMember, "event"), (#"{"team""#, #"["team""#, .malformedJSON, ""),
  ])
  func saysWhichMemberIsWrong(_ old: String, _ new: String, _ code: EventDecodingError.Code, _ detail: String) throws {
    let json = String(decoding: EventRecord(record).value, as: UTF8.self)
    let changed = try #require(json.firstRange(of: old).map { json.replacingCharacters(in: $0, with: new) })
    let error = #expect(throws: EventDecodingError.self) { try RelayRecord(decoding: [UInt8](changed.utf8)) }
    #expect(error?.code == code)
    if !detail.isEmpty { #expect(error?.detail == detail) }
  }
}
