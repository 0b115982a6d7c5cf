import Testing

@testable import AccountServices

/// What `Last-Event-ID` says, which nobody has to have told the truth in.
@Suite struct EventPositionTests {
  @Test(arguments: ["1.0", "1.z.10.0", "1.2gosa7pa2gv"])
  func aPositionIsWrittenAsItIsRead(_ text: String) throws {
    #expect(try #require(EventPosition(text)).text == text)
  }

  @Test(arguments: [
    "", "1", "1.", "x", "2.0", "01.0", "1..0", "1.0.", ".1.0", "1.-1", "1.+1", "1.-0", "1.00", "1.0a.0", "1.A", "1.0 ",
    " 1.0", "1.0\n", "1.é", "1.0x10", "1.٣", "1.2gosa7pa2gw", "1.zzzzzzzzzzzzzzzzzz", "1.0,0",
    "1" + String(repeating: ".0", count: 1001), "1." + String(repeating: "0", count: 20_000),
  ])
  func whatIsNoPositionIsRefused(_ text: String) { #expect(EventPosition(text) == nil, "\(text.prefix(40))") }

  @Test func noTextOfAPositionIsTooLong() throws {
    let most = Dictionary(uniqueKeysWithValues: (Int32(0)..<1000).map { ($0, Int64(1) << 53 - 1) })
    let text = try #require(EventPosition(most)).text
    #expect(text.utf8.count <= EventPosition.longestText)
    #expect(EventPosition(text)?.text == text)
  }

  @Test(arguments: [[:], [1: 0], [0: 0, 2: 0], [-1: 0], [0: -1], [0: .max]] as [[Int32: Int64]])
  func noTopicHasTheseOffsets(_ offsets: [Int32: Int64]) { #expect(EventPosition(offsets) == nil) }

  @Test func aPositionNeverGoesBack() throws {
    var position = try #require(EventPosition("1.5.5"))
    position.pass(7, of: 1)
    position.pass(6, of: 1)
    position.pass(4, of: 0)
    position.pass(9, of: 2)
    position.pass(9, of: -1)
    position.pass(.max, of: 0)
    #expect(position.text == "1.5.8")
  }

  @Test func readingGoesOnWhereTheTopicStillIs() throws {
    let position = try #require(EventPosition("1.5.8"))
    let whole = try #require(position.resumed(in: [0: 5..<5, 1: 0..<20]))
    #expect(whole.position == position && !whole.isGap)
    // A partition has come since.
    let more = try #require(position.resumed(in: [0: 0..<9, 1: 0..<20, 2: 0..<3]))
    #expect(more.position.text == "1.5.8.0" && !more.isGap)
    for (held, text) in [
      ([0: 6..<9, 1: 0..<20], "1.6.8"),  // retention has taken a record
      ([0: 0..<4, 1: 0..<20], "1.0.8"),  // the topic has never been there
      ([0: 5..<9], "1.5"),  // it has fewer partitions
      ([0: 0..<9, 1: 0..<20, 2: 4..<9], "1.5.8.4"),  // the beginning of a new one is gone
    ] as [([Int32: Range<Int64>], String)] {
      let resumed = try #require(position.resumed(in: held))
      #expect(resumed.isGap && resumed.position.text == text)
    }
    #expect(position.resumed(in: [:]) == nil)
    #expect(position.resumed(in: [1: 0..<9]) == nil)
  }
}
