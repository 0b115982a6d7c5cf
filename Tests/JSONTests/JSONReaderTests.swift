import JSON
import Testing

@Suite struct JSONReaderTests {
  @Test(
    arguments: [
      ("null", .null), ("true", true), (" false ", false), ("0", 0), ("-0", 0), ("-1", -1), ("\t42\r\n", 42),
      ("9007199254740991", 9_007_199_254_740_991), ("-9007199254740991", -9_007_199_254_740_991),
      ("\"\"", ""), ("\"a\"", "a"), ("[]", []), ("{}", [:]), ("[ ]", []), ("{ }", [:]),
      ("[1,[2,[3]],{}]", [1, [2, [3]], [:]]), ("[\"\",null , true]", ["", .null, true]),
      ("{\"a\":1,\"b\":{\"a\":[]}}", ["a": 1, "b": ["a": []]]),
      ("{\"\":0,\" \":1,\"A\":2,\"a\":3}", ["": 0, " ": 1, "A": 2, "a": 3]),
      ("{ \"a\" : 1 , \"b\" : [ 1 , 2 ] }", ["a": 1, "b": [1, 2]]),
      ("{\"longer than seven\":1,\"longer than eight\":2}", ["longer than seven": 1, "longer than eight": 2]),
      (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
      (#""\u0041\u00e9\u20ac\ud83d\ude00\uD834\uDd1E\u0000""#, "Aé€😀𝄞\u{0}"),
      (
        "\"é€😀\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}\"",
        "é€😀\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}"
      ),
      ("\"\u{feff}\u{2028}\"", "\u{feff}\u{2028}"),
      (
        #"{"\u0061":1,"b\n":"plain text of more than eight bytes\tand more"}"#,
        ["a": 1, "b\n": "plain text of more than eight bytes\tand more"]
      ),
      ("[1.5,1e3,1E+3,-0.0,0e-1,123456789012345678901234567890]", .array(.init(repeating: "number", count: 6))),
      ("9007199254740992", "number"), ("-9007199254740992", "number"),
    ] as [(String, JSONValue)])
  func readsGoodText(text: String, expected: JSONValue) throws {
    #expect(try JSONValue(reading: Array(text.utf8)) == expected)
    try check(Array(text.utf8))
  }

  @Test(
    arguments: [
      ("", .malformed), (" ", .malformed), ("nul", .malformed), ("nulL", .malformed), ("True", .malformed),
      ("NaN", .malformed), ("Infinity", .malformed), ("-Infinity", .malformed), ("undefined", .malformed),
      ("nullx", .trailingBytes), ("{}{}", .trailingBytes), ("[] 1", .trailingBytes), ("1 2", .trailingBytes),
      ("{}\u{0}", .trailingBytes), ("{}//", .trailingBytes), ("]", .malformed), ("}", .malformed), (",", .malformed),
      ("\u{feff}{}", .malformed), ("/**/{}", .malformed), ("'a'", .malformed), ("a", .malformed),
      ("[", .malformed), ("[1", .malformed), ("[1,", .malformed), ("[1,]", .malformed), ("[,1]", .malformed),
      ("[1 2]", .malformed), ("[1,,2]", .malformed), ("[1}", .malformed), ("[1:2]", .malformed),
      ("[\u{c}1]", .malformed),
      ("{", .malformed), ("{\"a\"", .malformed), ("{\"a\":", .malformed), ("{\"a\":1", .malformed),
      ("{\"a\":1,", .malformed), ("{\"a\":1,}", .malformed), ("{,}", .malformed), ("{\"a\" 1}", .malformed),
      ("{\"a\":1 \"b\":2}", .malformed), ("{a:1}", .malformed), ("{1:1}", .malformed), ("{null:1}", .malformed),
      ("{\"a\":1]", .malformed), ("{\"a\"::1}", .malformed), ("{\"a\":}", .malformed), ("{[]:1}", .malformed),
      ("-", .malformed), ("+1", .malformed), ("01", .trailingBytes), ("-01", .trailingBytes), ("1.", .malformed),
      (".5", .malformed), ("1.e3", .malformed), ("1e", .malformed), ("1e+", .malformed), ("1ee3", .malformed),
      ("0x10", .trailingBytes), ("--1", .malformed), ("1_000", .trailingBytes), ("- 1", .malformed), ("１", .malformed),
      ("\"", .malformed), ("\"a", .malformed), ("\"\n\"", .malformed), ("\"\u{0}\"", .malformed),
      ("\"\u{1f}\"", .malformed),
      (#""\""#, .malformed), (#""\x""#, .malformed), (#""\u""#, .malformed), (#""\u12""#, .malformed),
      (#""\u123g""#, .malformed), (#""\U0041""#, .malformed), (#""\a""#, .malformed), (#""\'""#, .malformed),
      (#""\"#, .malformed), (#""\u0041"#, .malformed), (#""\ud83d"#, .invalidText),
      (#""\ud83d""#, .invalidText), (#""\ude00""#, .invalidText), (#""\ud83d\u0041""#, .invalidText),
      (#""\ud83d\ud83d""#, .invalidText), (#""\ude00\ud83d""#, .invalidText), (#""\ud83dx""#, .invalidText),
      (#""\ud83d\n""#, .invalidText),
      (#"{"a":1,"a":1}"#, .duplicateMember), (#"{"a":1,"\u0061":1}"#, .duplicateMember),
      (#"{"\u0061":1,"a":1}"#, .duplicateMember), (#"{"\u0061":1,"\u0061":1}"#, .duplicateMember),
      (#"{"\/":1,"/":1}"#, .duplicateMember), (#"{"":1,"":1}"#, .duplicateMember),
      (#"[{"x":{"a":1,"b":{"a":2},"a":3}}]"#, .duplicateMember),
      (#"{"é":1,"\u00E9":1}"#, .duplicateMember), (#"{"longer than eight":1,"longer than eight":1}"#, .duplicateMember),
    ] as [(String, JSONError.Code)])
  func refusesBadText(text: String, code: JSONError.Code) {
    #expect { try JSONValue(reading: Array(text.utf8)) } throws: { ($0 as? JSONError)?.code == code }
    #expect("also where nobody looks at the values") { try check(Array(text.utf8)) } throws: {
      ($0 as? JSONError)?.code == code
    }
  }

  /// Not UTF-8: overlong, cut off, surrogates, beyond the last character, bytes that never occur.
  @Test(
    arguments: [
      [0x80], [0xbf], [0xc0, 0x80], [0xc1, 0xbf], [0xc2], [0xc2, 0x41], [0xc2, 0xc2], [0xe0, 0x80, 0x80],
      [0xe0, 0x9f, 0xbf],
      [0xe2, 0x82], [0xe2, 0x82, 0x41], [0xe2, 0x41, 0x82], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf],
      [0xf0, 0x80, 0x80, 0x80],
      [0xf0, 0x8f, 0xbf, 0xbf], [0xf0, 0x9f, 0x98], [0xf0, 0x9f, 0x98, 0x41], [0xf4, 0x90, 0x80, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
      [0xf8, 0x88, 0x80, 0x80, 0x80], [0xfe], [0xff], [0xe9],
    ] as [[UInt8]])
  func refusesBytesThatAreNoText(bytes: [UInt8]) {
    for padding in ["", "1234567", "12345678"] {
      let inside = Array("\"\(padding)".utf8) + bytes
      for text in [inside, inside + Array("\"".utf8), inside + Array("12345678\"".utf8)] {
        #expect(throws: JSONError.self) { try check(text) }
        #expect(throws: JSONError.self) { try check(Array("{".utf8) + text + Array(":1}".utf8)) }
      }
    }
  }

  @Test func everyControlCharacterNeedsAnEscapeInEveryPlace() {
    for byte in UInt8(0)..<0x20 {
      for place in 1...17 {
        var text = Array("\"abcdefghijklmnopq\"".utf8)
        text[place] = byte
        #expect { try check(text) } throws: { $0 as? JSONError == JSONError(.malformed, at: place) }
      }
    }
  }

  @Test(
    arguments: [
      (#"[[[1]]]"#, .tooDeep), (#"{"a":{"a":{"a":1}}}"#, .tooDeep), (#"{"a":1,"b":2,"c":3,"d":4}"#, .tooManyMembers),
      (#"[{"a":1,"b":2,"c":3,"d":4}]"#, .tooManyMembers), ("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]", .tooLarge),
    ] as [(String, JSONError.Code)])
  func refusesMoreThanItsLimits(text: String, code: JSONError.Code) throws {
    let limits = JSONLimits(bytes: 32, depth: 2, members: 3)
    #expect { try check(Array(text.utf8), limits) } throws: { ($0 as? JSONError)?.code == code }
    #expect { try JSONValue(reading: Array(text.utf8), limits) } throws: { ($0 as? JSONError)?.code == code }
    try check(Array(#"[{"a":1,"b":2,"c":3},{"d":4}]"#.utf8), limits)
  }

  @Test(arguments: ["", "a", "\\u0061", "the same beginning ", "é"])
  func noticesADuplicateAmongAnyNumberOfNames(beginning: String) throws {
    for count in 1...19 {
      let names = (0..<count).map { "\"\(beginning)\($0 + 10)\":[{\"\(beginning)10\":0}]" }
      try check(Array("{\(names.joined(separator: ","))}".utf8))
      for repeated in names {
        let text = Array("{\(names.joined(separator: ",")),\(repeated)}".utf8)
        #expect { try check(text) } throws: { ($0 as? JSONError)?.code == .duplicateMember }
      }
    }
  }

  /// Among more than are compared one by one, and however they are spelled.
  @Test(arguments: [0, 63, 64, 65, 200, 299])
  func noticesADuplicateAmongHundredsOfNames(place: Int) throws {
    let limits = JSONLimits(bytes: 1 << 20, depth: 3, members: 1000)
    let names = (0..<300).map { "the same beginning \($0 + 1000)" }
    let members = names.map { "\"\($0)\":{\"\(names[place])\":0}" }.joined(separator: ",")
    try check(Array("{\(members)}".utf8), limits)
    let escaped = "\\u0074" + names[place].dropFirst()
    for repeated in [names[place], escaped] {
      let text = Array("{\(members),\"\(repeated)\":0}".utf8)
      #expect { try check(text, limits) } throws: { ($0 as? JSONError)?.code == .duplicateMember }
    }
  }

  /// Names that are as hard to tell apart as somebody who means it can make them: compared each with each, which takes
  /// some 30 million comparisons of a hundred bytes, these would take minutes here.
  @Test(.timeLimit(.minutes(1))) func thousandsOfNamesAreReadInProportionToTheirLength() throws {
    let limits = JSONLimits(bytes: 1 << 21, depth: 3, members: 8192)
    let names = (0..<8192).map { "\"\(String(repeating: "x", count: 110))\($0 + 10_000)\":0" }
    try check(Array("{\(names.joined(separator: ","))}".utf8), limits)
  }

  /// Whoever catches what was to be passed on does not make JSON of it.
  @Test(
    arguments: [
      (#"{"a":{"b":1,}"#, .malformed), (#"{"a":tru,"b":true}"#, .malformed),
      (#"{"a":{"b":1,"b":2}}"#, .duplicateMember),
      (#"{"a":{"b":1]}"#, .malformed), (#"{"a":{"b":"\x"}}"#, .unexpectedKind),
      (#"{"a":{"b":"c","d":1}}"#, .unexpectedKind),
      (#"{"a":{"b":1.5},"c":true}"#, .notAnInteger), (#"{"a":[1,],"b":true}"#, .malformed),
      (#"{"a":true,"b":{"c":1},"d":{}}"#, nil), (#"{"a":"neither","b":[true],"c":true}"#, nil),
    ] as [(String, JSONError.Code?)])
  func anErrorThatIsSwallowedIsThrownInTheEnd(text: String, code: JSONError.Code?) throws {
    let bytes = Array(text.utf8)
    func read() throws {
      try unsafe JSONReader.read(bytes.span.bytes, .ofTests) { reader throws(JSONError) in
        try reader.readObject { _, value in
          do {
            _ = try value.readBoolean()
          } catch {
            do { try value.readObject { _, inner throws(JSONError) in _ = try inner.readInteger() } } catch {}
          }
        }
      }
    }
    guard let code else { return try read() }
    #expect { try read() } throws: { ($0 as? JSONError)?.code == code }
  }

  @Test func nestingUpToTheDeepestLimitIsRead() throws {
    let limits = JSONLimits(bytes: 1000, depth: 128, members: 1)
    try check(Array((String(repeating: "[", count: 128) + String(repeating: "]", count: 128)).utf8), limits)
    #expect { try check([UInt8](repeating: UInt8(ascii: "["), count: 1000), limits) } throws: {
      $0 as? JSONError == JSONError(.tooDeep, at: 128)
    }
  }

  @Test(arguments: ["1", "\"1\"", "true", "null", "[]", "{}"])
  func anotherKindThanAskedForIsAnError(text: String) {
    func fails(_ read: (inout JSONReader) throws(JSONError) -> Void) -> Bool {
      let bytes = Array(text.utf8)
      do {
        try unsafe JSONReader.read(bytes.span.bytes, .ofTests, read)
        return false
      } catch { return error == JSONError(.unexpectedKind, at: 0) }
    }
    #expect(fails { reader throws(JSONError) in _ = try reader.readInteger() } == (text != "1"))
    #expect(fails { reader throws(JSONError) in _ = try reader.readString() } == (text != "\"1\""))
    #expect(fails { reader throws(JSONError) in _ = try reader.readStringBytes() } == (text != "\"1\""))
    #expect(fails { reader throws(JSONError) in _ = try reader.readBoolean() } == (text != "true"))
    #expect(fails { reader throws(JSONError) in try reader.readArray { _ in } } == (text != "[]"))
    #expect(fails { reader throws(JSONError) in try reader.readObject { _, _ in } } == (text != "{}"))
  }

  @Test(arguments: ["1.0", "1e3", "9007199254740992", "-9007199254740992", "100000000000000000000000000000"])
  func aNumberThatIsNoExactIntegerIsAnError(text: String) {
    let bytes = Array(text.utf8)
    #expect {
      try unsafe JSONReader.read(bytes.span.bytes, .ofTests) { reader throws(JSONError) in try reader.readInteger() }
    } throws: { $0 as? JSONError == JSONError(.notAnInteger, at: 0) }
  }

  @Test func tellsWhereAValueStands() throws {
    let text = #"{"skipped":[1,{"a":"]"}], "events" : { "type":"x" } ,"last":"é"}"#
    let bytes = Array(text.utf8)
    var found: [String: String] = [:]
    try unsafe JSONReader.read(bytes.span.bytes, .ofTests) { reader throws(JSONError) in
      try reader.readObject { name, value throws(JSONError) in
        guard name != "skipped" else { return }
        let start = value.offset
        let range = try value.readRaw()
        #expect(range.lowerBound == start)
        found[name] = String(decoding: bytes[range], as: UTF8.self)
      }
    }
    #expect(found == ["events": #"{ "type":"x" }"#, "last": #""é""#])
  }

  @Test func errorsSayWhereAndNeverWhat() {
    #expect { try check(Array(#"{"secret":tru}"#.utf8)) } throws: { "\($0)" == "malformed at byte 10" }
  }
}
