import Foundation
import JSON
import TestSupport
import Testing

/// Foundation reads the same where both read: another implementation as the judge.
@Suite struct JSONAgreementTests {
  private static let seeds: [String] = [
    #"{"iss":"https://example.com","aud":["a","b"],"exp":1657703492,"events":"{\"type\":\"x\",\"n\":[1,2,{}]}"}"#,
    #"[0,-1,12,true,false,null,"",{"a":{"b":{"c":[[]]}}},"\u00e9\ud83d\ude00\n\/"]"#,
    #"{"keys":[{"kty":"RSA","n":"4dGQ7bQK8LgILOdLsYzfZjkEAoQeVC","e":"AQAB"},{"kty":"EC"}]}"#,
    "{ \"é€😀\" :\t[ 1 , 2.5 , -3e2 ] ,\r\n \"b\" : \"\\\\\\\"\" }",
  ]

  @Test func randomMutationsAreReadAsFoundationReadsThemOrRefused() throws {
    var random = SeededRandom()
    let characters = #"{}[],:"\/bfnrtu0123456789.eE+-trufalsn "# + "\u{0}\n\u{1f}\u{7f}é"
    var accepted = 0
    for round in SeededRandom.rounds(5000) {
      let text = random.mutation(of: Array(Self.seeds[round % Self.seeds.count].utf8), characters: characters)
      let isValid = isAccepted(text)
      let value: JSONValue
      do { value = try JSONValue(reading: text) } catch {
        #expect(!isValid, "seed \(random.seed), round \(round)")
        continue
      }
      #expect(isValid, "seed \(random.seed), round \(round)")
      do {
        let theirs = try JSONSerialization.jsonObject(with: Data(text), options: [.fragmentsAllowed])
        accepted += 1
        #expect(isSame(value, theirs), "seed \(random.seed), round \(round)")
      } catch {
        // Only numbers that its types cannot hold: `1657e03492`.
        #expect("\(error)".contains("not representable"), "seed \(random.seed), round \(round)")
      }
    }
    #expect(accepted > 100, "seed \(random.seed)")
  }

  @Test func foundationReadsWhatWeWrite() throws {
    let value: JSONValue = [
      "text": .string(String(decoding: 0..<0x80, as: UTF8.self) + "é€😀"),
      "list": [1, -1, 9_007_199_254_740_991, .null, true, false],
      "nested": ["": [:], "a\"b": []],
    ]
    for bytes in [value.bytes, value.canonicalBytes] {
      #expect(isSame(value, try JSONSerialization.jsonObject(with: Data(bytes))))
    }
    #expect(try JSONValue(reading: value.bytes) == value)
  }

  private func isAccepted(_ text: [UInt8]) -> Bool {
    do {
      try check(text)
      return true
    } catch { return false }
  }

  private func isSame(_ ours: JSONValue, _ theirs: Any) -> Bool {
    switch (ours, theirs) {
    case (.null, is NSNull): return true
    case (.object(let members), let object as [String: Any]):
      // Foundation's keys are compared as Swift compares strings, by canonical equivalence: it may have merged some.
      return members.count >= object.count
        && members.allSatisfy { member in
          members.count > object.count || object[member.name].map { isSame(member.value, $0) } == true
        }
    case (.array(let elements), let array as [Any]):
      return elements.count == array.count && zip(elements, array).allSatisfy { isSame($0, $1) }
    case (.string("number"), is NSNumber): return true
    case (.string(let text), let string as String): return Array(text.utf8) == Array(string.utf8)
    case (.integer(let value), let number as NSNumber): return number.int64Value == value
    case (.boolean(let value), let number as NSNumber): return number.boolValue == value
    default: return false
    }
  }
}
