import AccountEvents
import AccountServices
import ConsumerSupport
import Foundation
import Glibc
import JSON
import Kafka
import TestSupport
import Testing

/// Files of records: what is read is what was written, and nothing else is taken for one.
@Suite struct RecordFileTests {
  private let files = TemporaryDirectory()
  private var path: String { files.path + "/records.jsonl" }

  private static func record(
    _ offset: Int64, in partition: Int32 = 0, key: [UInt8]? = Array("A1B2C3D4E5/ada".utf8),
    value: [UInt8]? = Array("{}".utf8), headers: [KafkaHeader] = [], time: Int64? = 1_750_000_000_000
  ) -> ConsumedRecord {
    ConsumedRecord(
      topic: Topic.accountEvents.name, position: KafkaPosition(partition: partition, offset: offset), key: key,
      value: value, headers: headers, timestamp: time)
  }

  /// What nobody would think of.
  static let odd: [ConsumedRecord] = [
    record(0), record(1, key: nil, value: nil, time: nil), record(2, key: [], value: []),
    record(3, key: [0, 255, 10, 27], value: Array("\u{1b}[2J\u{9b}31m\u{202e}\n".utf8)),
    record(4, value: Array("\"quoted\" \\ and ü and 日本 and \u{e9} and e\u{301}".utf8)),
    record(
      5,
      headers: [
        KafkaHeader("ce_id", "a"), KafkaHeader("ce_id", "b"), KafkaHeader("", [UInt8]()), KafkaHeader("none", nil),
        KafkaHeader("\u{7f}é", [0xc3]),
      ]),
    record(6, time: .max), record(7, time: .min), record(8, time: -1), record((1 << 53) - 1, in: .max),
  ]

  private func write(_ records: [ConsumedRecord]) throws {
    let writer = try RecordFileWriter(path, of: .accountEvents, at: .sample(1_777_802_400_000))
    try writer.append(records)
    try writer.finish()
  }

  private func read() throws -> [ConsumedRecord] {
    let reader = try RecordFileReader(path)
    #expect(reader.topic == Topic.accountEvents.name)
    var records: [ConsumedRecord] = []
    while let page = try reader.next(upTo: 3) {
      #expect(1...3 ~= page.count)
      records += page
    }
    return records
  }

  @Test func whatIsReadIsWhatWasWritten() throws {
    try write(Self.odd)
    #expect(try read() == Self.odd)
    var status = stat()
    #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control })
    #expect(!text.contains("\u{202e}"), "nor does it turn around what stands on a terminal")
    #expect(try FileManager.default.contentsOfDirectory(atPath: files.path) == ["records.jsonl"])
  }

  @Test func itsFormIsAsDocumented() throws {
    try write([
      Self.record(17, in: 3, headers: [KafkaHeader("ce_id", "S25"), KafkaHeader("none", nil)]),
      Self.record(18, in: 3, key: [0], value: nil, time: nil),
    ])
    #expect(
      try String(contentsOfFile: path, encoding: .utf8) == """
        {"format":"siwa-records","version":1,"topic":"apple.account-events.v1","written":"2026-05-03T10:00:00.000Z"}
        {"partition":3,"offset":17,"timestamp":1750000000000,"key":"A1B2C3D4E5/ada","value":"{}","headers":[["ce_id","S25"],["none",null]]}
        {"partition":3,"offset":18,"timestamp":null,"key":{"base64":"AA=="},"value":null,"headers":[]}
        {"records":2}

        """)
  }

  @Test func aFileWithoutRecordsIsOne() throws {
    try write([])
    #expect(try read().isEmpty)
  }

  @Test func nothingIsThereBeforeItIsWholeAndNothingIsReplaced() throws {
    do {
      let writer = try RecordFileWriter(path, of: .accountEvents, at: .sample(0))
      try writer.append(Self.odd)
      #expect(unsafe access(path, F_OK) != 0)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: files.path).isEmpty, "what is given up leaves nothing")
    let late = try RecordFileWriter(path, of: .accountEvents, at: .sample(0))
    _ = files.write("records.jsonl", "somebody else's")
    #expect(throws: RecordFileError.self) { try late.finish() }
    #expect(throws: RecordFileError.self) { _ = try RecordFileWriter(path, of: .accountEvents, at: .sample(0)) }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "somebody else's")
  }

  private static let first = #"{"format":"siwa-records","version":1,"topic":"apple.account-events.v1"}"#
  private static let good =
    #"{"partition":0,"offset":17,"timestamp":1,"key":null,"value":null,"headers":[]}"#

  @Test(
    arguments: [
      ("", "line 1: no file of records"), ("no JSON\n", "line 1: not of the form of a record (unexpected-kind)"),
      ("{\"format\":\"siwa-words\"}\n", "line 1: no file of records"), ("\(good)\n", "line 1: no file of records"),
      ("\(first.replacing(":1", with: ":2"))\n", "line 1: of version 2, and this program knows 1"),
      ("{\"format\":\"siwa-records\",\"version\":1}\n", "line 1: does not name its topic"),
      (first, "line 1: the file ends before its end: it was cut off"),
      ("\(first)\n", "line 2: the file ends before its end: it was cut off"),
      ("\(first)\n\(good)\n", "line 3: the file ends before its end: it was cut off"),
      ("\(first)\n\(good.dropLast(9))\n", "line 2: not of the form of a record (malformed)"),
      ("\(first)\n\(good)\n\(good)\n", "line 3: not behind the record before it in its partition"),
      ("\(first)\n\(good)\n\(first)\n", "line 3: the file begins again"),
      ("\(first)\n\(good)\n{\"records\":2}\n", "line 3: 1 records, of 2 that were written"),
      ("\(first)\n{\"records\":0}\n\(good)\n", "line 3: something stands behind the end"),
    ])
  func whatIsDamagedIsNamed(_ text: String, _ words: String) throws {
    _ = files.write("records.jsonl", text)
    let error = #expect(throws: RecordFileError.self) { try read() }
    #expect(error?.description == "\(path): \(words)")
  }

  @Test(
    arguments: [
      #""partition":-1"#, #""partition":2147483648"#, #""partition":"0""#, #""offset":-1"#,
      #""offset":9007199254740992"#, #""offset":"9223372036854775807""#, #""offset":null"#, #""timestamp":"soon""#,
      #""timestamp":1.5"#, #""key":1"#, #""key":{"base64":"A"}"#, #""key":{"base64":"AB=="}"#, #""key":{}"#,
      #""value":["a"]"#, #""headers":[["a"]]"#, #""headers":[["a",null,null]]"#, #""headers":[[null,"a"]]"#,
      #""headers":{"a":"b"}"#, #""headers":[[{"base64":"/w=="},"a"]]"#,
    ])
  func noLineIsTakenForWhatItIsNot(_ member: String) throws {
    let name = try #require(member.split(separator: ":").first.map(String.init))
    let members = Self.good.dropFirst().dropLast().split(separator: ",").map(String.init)
    let line = "{\(members.map { $0.hasPrefix(name) ? member : $0 }.joined(separator: ","))}"
    _ = files.write("records.jsonl", "\(Self.first)\n\(line)\n{\"records\":1}\n")
    let error = #expect(throws: RecordFileError.self) { try read() }
    #expect(error?.line == 2)
  }
}
