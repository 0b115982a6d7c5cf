import AccountEvents
import Foundation
import TestSupport
import Testing

@Suite struct OutcomeTests {
  private func decode(_ json: String) throws(EventDecodingError) -> AccountOutcome {
    try AccountOutcome(decoding: [UInt8](json.utf8))
  }

  @Test(arguments: [
    ("account-erased", Examples.erased), ("account-erased-but-for-one", Examples.discarded),
    ("sessions-ended", Examples.outcome(.sessionsEnded, of: .consentRevoked)),
    ("no-effect", Examples.outcome(.noEffect, because: .supersededByNewerEvent, of: .consentRevoked)),
  ])
  func readsItsGoldenRecord(_ name: String, _ outcome: AccountOutcome) throws {
    let golden = try Repository.bytes("Tests/AccountEventsTests/Golden/\(name).record")
    let value = try #require(golden.split(separator: UInt8(ascii: "\n")).last)
    #expect(try AccountOutcome(decoding: [UInt8](value)) == outcome)
  }

  @Test(arguments: Examples.withoutEffect) func readsEveryReason(_ outcome: AccountOutcome) throws {
    #expect(try AccountOutcome(decoding: EventRecord(outcome).value) == outcome)
  }

  @Test(arguments: [
    (#","reason":"echo""#, "", EventDecodingError.Code.malformedMember),
    (#""echo""#, #""of-a-later-version""#, .unknownType),
  ])
  func doesNotPassOverWhyNothingWasDone(_ old: String, _ new: String, _ code: EventDecodingError.Code) throws {
    let outcome = Examples.outcome(.noEffect, because: .echo, of: .consentRevoked)
    let json = String(decoding: EventRecord(outcome).value, as: UTF8.self)
    let changed = try #require(json.firstRange(of: old).map { json.replacingCharacters(in: $0, with: new) })
    let error = #expect(throws: EventDecodingError.self) { try decode(changed) }
    #expect(error?.code == code && error?.detail == "reason")
  }

  @Test func hasOneSpellingOfAHash() throws {
    let hash = try #require(AccountHash([UInt8](repeating: 0xa7, count: 32)))
    #expect(AccountHash(hash.description) == hash)
    #expect(AccountHash(hash.description, key: HashKeyID(7)) == hash, "the bytes are what counts")
    for text in ["", hash.description.uppercased(), String(hash.description.dropLast()), hash.description + "0"] {
      #expect(AccountHash(text) == nil)
    }
  }

  @Test func namesTheKeyOfItsHashWhereThatIsNotTheFirst() throws {
    let key = try #require(HashKeyID("00fedcba98765432"))
    let value = EventRecord(Examples.outcome(.sessionsEnded, of: .consentRevoked, key: key)).value
    let read = try AccountOutcome(decoding: value)
    #expect(read.account.key == key && key.description == "00fedcba98765432")
    #expect(try AccountOutcome(decoding: EventRecord(Examples.erased).value).account.key == nil)
    for text in ["", "0fedcba98765432", "00FEDCBA98765432", "00fedcba987654320", "+0fedcba98765432"] {
      #expect(HashKeyID(text) == nil)
    }
    let json = String(decoding: value, as: UTF8.self)
    let error = #expect(throws: EventDecodingError.self) { try decode(json.replacing("00fedcba", with: "00FEDCBA")) }
    #expect(error?.code == .malformedMember && error?.detail == "account_key")
  }

  @Test(arguments: [
    ("account-erased", "account-moved", EventDecodingError.Code.unknownType, "outcome"),
    (#""account":"0"#, #""account":"g"#, .malformedMember, "account"),
    (#""id":"S"#, #""id":" S"#, .malformedMember, "cause.id"),
    (#""event_time":"#, #""event_time":-"#, .malformedMember, "cause.event_time"),
    (#""name":"shop","#, "", .malformedMember, "targets.name"),
    (#""done_at""#, #""later""#, .malformedMember, "done_at"),
  ])
  func saysWhichMemberIsWrong(_ old: String, _ new: String, _ code: EventDecodingError.Code, _ detail: String) throws {
    let json = String(decoding: EventRecord(Examples.erased).value, as: UTF8.self)
    let changed = try #require(json.firstRange(of: old).map { json.replacingCharacters(in: $0, with: new) })
    let error = #expect(throws: EventDecodingError.self) { try decode(changed) }
    #expect(error?.code == code && error?.detail == detail)
  }
}
