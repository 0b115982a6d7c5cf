import JSON
import Testing

@Suite struct JSONWritingTests {
  @Test func membersKeepTheirOrder() {
    let value: JSONValue = ["b": 1, "a": [true, false, .null, -5], "": ["x": "y"]]
    #expect(text(value.bytes) == #"{"b":1,"a":[true,false,null,-5],"":{"x":"y"}}"#)
  }

  /// RFC 8785 §3.2.3, with its property names and its order.
  @Test func canonicalOrderIsThatOfUTF16() {
    let value: JSONValue = [
      "\u{20ac}": "Euro Sign", "\r": "Carriage Return", "\u{fb33}": "Hebrew Letter Dalet With Dagesh", "1": "One",
      "\u{1f600}": "Emoji: Grinning Face", "\u{80}": "Control", "\u{f6}": "Latin Small Letter O With Diaeresis",
    ]
    #expect(
      text(value.canonicalBytes)
        == "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\","
        + "\"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\","
        + "\"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}")
  }

  /// RFC 8785 §3.2.2 without its fractions.
  @Test func canonicalFormOfTheStandardsExample() throws {
    let input = #"""
      {
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
      }
      """#
    #expect(
      text(try JSONValue(reading: Array(input.utf8)).canonicalBytes)
        == #"{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}"#)
  }

  @Test func nestedObjectsAreOrderedToo() {
    let value: JSONValue = ["b": [["z": 1, "y": 2]], "a": ["d": 1, "c": ["f": 1, "e": 2]]]
    #expect(text(value.canonicalBytes) == #"{"a":{"c":{"e":2,"f":1},"d":1},"b":[{"y":2,"z":1}]}"#)
  }

  @Test(
    arguments: [
      (0, "\\u0000"), (7, "\\u0007"), (8, "\\b"), (9, "\\t"), (10, "\\n"), (11, "\\u000b"), (12, "\\f"), (13, "\\r"),
      (0x1f, "\\u001f"), (0x22, "\\\""), (0x5c, "\\\\"), (0x2f, "/"), (0x7f, "\u{7f}"), (0x2028, "\u{2028}"),
    ] as [(UInt32, String)])
  func escapesAsFewCharactersAsItCan(scalar: UInt32, expected: String) throws {
    let character = String(Character(try #require(Unicode.Scalar(scalar))))
    #expect(text(JSONValue.string(character).bytes) == "\"\(expected)\"")
  }

  @Test func writesTheLargestIntegersThatAreExact() {
    let value: JSONValue = [9_007_199_254_740_991, -9_007_199_254_740_991]
    #expect(text(value.bytes) == "[9007199254740991,-9007199254740991]")
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
