import AccountEvents
import Cryptography
import JSON
package import Kafka

/// The lines of a file of records: JSON, one object each. docs/replay.md describes them.
///
/// The first names the topic, the last says how many records stand between the two, so that a file of which the end is
/// missing is not taken for a whole one. Bytes are written as text where they are printable UTF-8, and otherwise as
/// `{"base64":"…"}`: no line can command a terminal, and what is read is what was written.
package enum RecordLine {
  static let format = "siwa-records"
  static let version: Int64 = 1
  /// The longest line that is read. Brokers take a megabyte for a record unless they are told otherwise.
  static let limits = JSONLimits(bytes: 256 << 20, depth: 8, members: 16)

  /// What a line says.
  enum Content {
    /// The file begins.
    case beginning(format: String, version: Int64, topic: String)
    /// A record, whose topic the beginning named.
    case record(ConsumedRecord)
    /// The file is at its end, after as many records.
    case end(records: Int64)
  }

  /// The line that a file begins with.
  static func beginning(of topic: Topic, at time: Timestamp) -> [UInt8] {
    let line: JSONValue = [
      "format": .string(format), "version": .integer(version), "topic": .string(topic.name),
      "written": .string(time.description),
    ]
    return line.bytes
  }

  /// The line that a file ends with.
  static func end(records: Int64) -> [UInt8] { JSONValue.object([.init("records", .integer(records))]).bytes }

  /// The line of a record: all of it, personal data too.
  package static func record(_ record: ConsumedRecord) -> [UInt8] {
    var line: [UInt8] = []
    line.append(contentsOf: #"{"partition":"#.utf8)
    JSON.append(Int64(record.position.partition), to: &line)
    line.append(contentsOf: #","offset":"#.utf8)
    appendNumber(record.position.offset, to: &line)
    line.append(contentsOf: #","timestamp":"#.utf8)
    if let time = record.timestamp { appendNumber(time, to: &line) } else { line.append(contentsOf: "null".utf8) }
    line.append(contentsOf: #","key":"#.utf8)
    append(record.key, to: &line)
    line.append(contentsOf: #","value":"#.utf8)
    append(record.value, to: &line)
    line.append(contentsOf: #","headers":["#.utf8)
    for (index, header) in record.headers.enumerated() {
      line.append(contentsOf: (index == 0 ? "[" : ",[").utf8)
      append(Array(header.name.utf8), to: &line)
      line.append(UInt8(ascii: ","))
      append(header.value, to: &line)
      line.append(UInt8(ascii: "]"))
    }
    line.append(contentsOf: "]}".utf8)
    return line
  }

  /// A number that other programs could not read exactly is written as text.
  private static func appendNumber(_ number: Int64, to line: inout [UInt8]) {
    if number.magnitude < 1 << 53 { JSON.append(number, to: &line) } else { JSON.append(String(number), to: &line) }
  }

  private static func append(_ bytes: [UInt8]?, to line: inout [UInt8]) {
    guard let bytes else { return line.append(contentsOf: "null".utf8) }
    if let text = printable(bytes) { return JSON.append(text, to: &line) }
    line.append(contentsOf: #"{"base64":"#.utf8)
    JSON.append(Base64.encode(bytes), to: &line)
    line.append(UInt8(ascii: "}"))
  }

  /// The text that the bytes are, where a terminal shows all of it as it is.
  private static func printable(_ bytes: [UInt8]) -> String? {
    if bytes.allSatisfy({ 0x20...0x7e ~= $0 }) { return String(decoding: bytes, as: UTF8.self) }
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    return String(printable: text).utf8.elementsEqual(bytes) ? text : nil
  }

  // MARK: Reading

  /// Reads a line of a file whose beginning named the topic.
  static func read(_ line: [UInt8], of topic: String) throws(JSONError) -> Content {
    let members = try unsafe JSONReader.read(line.span.bytes, limits) { reader throws(JSONError) in
      try Members(reading: &reader)
    }
    if let records = members.records { return .end(records: records) }
    if let format = members.format {
      return .beginning(format: format, version: members.version ?? 0, topic: members.topic ?? "")
    }
    guard let partition = members.partition.flatMap({ Int32(exactly: $0) }), partition >= 0,
      let offset = members.offset, 0..<1 << 53 ~= offset, members.isWhole
    else { throw JSONError(.malformed, at: 0) }
    return .record(
      ConsumedRecord(
        topic: topic, position: KafkaPosition(partition: partition, offset: offset), key: members.key,
        value: members.value, headers: members.headers ?? [], timestamp: members.timestamp))
  }

  private struct Members {
    var format, topic: String?
    var version, records, partition, offset, timestamp: Int64?
    var key, value: [UInt8]?
    var headers: [KafkaHeader]?
    private var isTold = (key: false, value: false, timestamp: false)

    /// Whether all is there that a record has, be it null.
    var isWhole: Bool { isTold.key && isTold.value && isTold.timestamp && headers != nil }

    init(reading reader: inout JSONReader) throws(JSONError) {
      try reader.readObject { name, value throws(JSONError) in try read(name, &value) }
    }

    private mutating func read(_ name: String, _ reader: inout JSONReader) throws(JSONError) {
      switch name {
      case "format": format = try reader.readString()
      case "topic": topic = try reader.readString()
      case "version": version = try reader.readInteger()
      case "records": records = try reader.readInteger()
      case "partition": partition = try reader.readInteger()
      case "offset": offset = try Self.readNumber(&reader)
      case "timestamp": (timestamp, isTold.timestamp) = (try Self.readNumber(&reader), true)
      case "key": (key, isTold.key) = (try Self.readBytes(&reader), true)
      case "value": (value, isTold.value) = (try Self.readBytes(&reader), true)
      case "headers": headers = try Self.readHeaders(&reader)
      default: break
      }
    }

    private static func readNumber(_ reader: inout JSONReader) throws(JSONError) -> Int64? {
      switch try reader.kind {
      case .null: return nil
      case .string:
        let offset = reader.offset
        guard let number = Int64(try reader.readString()) else { throw JSONError(.notAnInteger, at: offset) }
        return number
      default: return try reader.readInteger()
      }
    }

    private static func readBytes(_ reader: inout JSONReader) throws(JSONError) -> [UInt8]? {
      switch try reader.kind {
      case .null: return nil
      case .string: return try reader.readStringBytes()
      default:
        var bytes: [UInt8]?
        let offset = reader.offset
        try reader.readObject { name, value throws(JSONError) in
          if name == "base64" { bytes = Base64.decode(try value.readString()) }
        }
        guard let bytes else { throw JSONError(.malformed, at: offset) }
        return bytes
      }
    }

    private static func readHeaders(_ reader: inout JSONReader) throws(JSONError) -> [KafkaHeader] {
      var headers: [KafkaHeader] = []
      try reader.readArray { pair throws(JSONError) in
        var parts: [[UInt8]?] = []
        let offset = pair.offset
        try pair.readArray { part throws(JSONError) in parts.append(try readBytes(&part)) }
        guard parts.count == 2, let name = parts[0], let text = String(validating: name, as: UTF8.self) else {
          throw JSONError(.malformed, at: offset)
        }
        headers.append(KafkaHeader(text, parts[1]))
      }
      return headers
    }
  }
}
