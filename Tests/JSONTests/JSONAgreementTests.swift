import Foundation
import JSON
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
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SplitMix(state: seed)
    let alphabet =
      Array(#"{}[],:"\/bfnrtu0123456789.eE+-trufalsn "#.utf8) + [
        0, 0x0a, 0x1f, 0x7f, 0x80, 0xc3, 0xe2, 0xed, 0xf0, 0xff,
      ]
    var accepted = 0
    for round in 0..<20_000 {
      var text = Array(Self.seeds[round % Self.seeds.count].utf8)
      for _ in 0..<Int.random(in: 1...3, using: &random) where !text.isEmpty {
        let place = Int.random(in: 0..<text.count, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: text.remove(at: place)
        case 1: text.insert(alphabet.randomElement(using: &random)!, at: place)
        case 2: text.removeSubrange(place...)
        case 3: text.insert(contentsOf: text[place..<min(place + 9, text.count)], at: place)
        default: text[place] = alphabet.randomElement(using: &random)!
        }
      }
      let isValid = isAccepted(text)
      let value: JSONValue
      do { value = try JSONValue(reading: text) } catch {
        #expect(!isValid, "seed \(seed), round \(round)")
        continue
      }
      #expect(isValid, "seed \(seed), round \(round)")
      do {
        let theirs = try JSONSerialization.jsonObject(with: Data(text), options: [.fragmentsAllowed])
        accepted += 1
        #expect(isSame(value, theirs), "seed \(seed), round \(round)")
      } catch {
        // Only numbers that its types cannot hold: `1657e03492`.
        #expect("\(error)".contains("not representable"), "seed \(seed), round \(round)")
      }
    }
    #expect(accepted > 500, "seed \(seed)")
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

/// A small generator of random numbers that starts where it is told to, so that a failure can be run again.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
