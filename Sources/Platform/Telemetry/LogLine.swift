/// One line while it is being written.
struct LogLine {
  private let format: LogFormat
  private var bytes: [UInt8] = []
  private var isTruncated = false
  /// Room for the mark of truncation and the line's end.
  private static let reserve = 32

  init(format: LogFormat) {
    self.format = format
    bytes.reserveCapacity(256)
  }

  mutating func begin(time: Int64, level: LogLevel, message: StaticString) {
    switch format {
    case .json:
      bytes.append(contentsOf: "{\"time\":\"".utf8)
      RFC3339.append(time, to: &bytes)
      bytes.append(contentsOf: "\",\"level\":\"".utf8)
      bytes.append(contentsOf: level.rawValue.utf8)
      bytes.append(contentsOf: "\",\"message\":\"".utf8)
      appendEscaped(message.description)
      bytes.append(UInt8(ascii: "\""))
    case .text:
      RFC3339.append(time, to: &bytes)
      let name = level.rawValue.uppercased()
      bytes.append(contentsOf: " \(name)".utf8)
      // The longest level is WARNING; messages stand in one column.
      for _ in name.utf8.count..<8 { bytes.append(UInt8(ascii: " ")) }
      appendEscaped(message.description)
    }
  }

  mutating func append(_ key: StaticString, _ value: LogValue) {
    if isTruncated { return }
    let before = bytes.count
    switch format {
    case .json:
      bytes.append(contentsOf: ",\"".utf8)
      append(key)
      bytes.append(contentsOf: "\":".utf8)
    case .text:
      bytes.append(UInt8(ascii: " "))
      append(key)
      bytes.append(UInt8(ascii: "="))
    }
    append(value)
    if bytes.count > Logger.maximumLineSize - Self.reserve {
      bytes.removeSubrange(before...)
      isTruncated = true
    }
  }

  mutating func finish() -> [UInt8] {
    switch format {
    case .json: bytes.append(contentsOf: isTruncated ? ",\"log.truncated\":true}\n".utf8 : "}\n".utf8)
    case .text: bytes.append(contentsOf: isTruncated ? " log.truncated=true\n".utf8 : "\n".utf8)
    }
    return bytes
  }

  private mutating func append(_ value: LogValue) {
    switch value {
    case .string(let text):
      let isQuoted = format == .json || text.isEmpty || text.utf8.contains { $0 <= 0x20 || $0 == 0x22 || $0 == 0x3d }
      if isQuoted { bytes.append(UInt8(ascii: "\"")) }
      appendEscaped(text)
      if isQuoted { bytes.append(UInt8(ascii: "\"")) }
    case .integer(let number): bytes.append(contentsOf: String(number).utf8)
    case .number(let number) where number.isFinite: bytes.append(contentsOf: number.description.utf8)
    case .number(let number): append(.string(number.description))
    case .boolean(let truth): bytes.append(contentsOf: truth ? "true".utf8 : "false".utf8)
    }
  }

  private mutating func append(_ key: StaticString) {
    key.withUTF8Buffer { buffer in unsafe bytes.append(contentsOf: buffer) }
  }

  /// Text as the inside of a JSON string, in both formats: a line stays a line, and a terminal sees no commands.
  private mutating func appendEscaped(_ text: String) {
    // Nearly everything is plain ASCII, which needs no look at each scalar.
    if text.utf8.count <= Logger.maximumValueSize, text.utf8.allSatisfy(\.isPlain) {
      return bytes.append(contentsOf: text.utf8)
    }
    let limit = bytes.count + Logger.maximumValueSize
    for scalar in text.unicodeScalars {
      let width = UTF8.width(scalar)
      if bytes.count + width > limit {
        bytes.append(contentsOf: "…".utf8)
        return
      }
      switch scalar {
      case "\"": bytes.append(contentsOf: "\\\"".utf8)
      case "\\": bytes.append(contentsOf: "\\\\".utf8)
      case "\n": bytes.append(contentsOf: "\\n".utf8)
      case "\r": bytes.append(contentsOf: "\\r".utf8)
      case "\t": bytes.append(contentsOf: "\\t".utf8)
      case _ where scalar.isHostileToTerminals: appendHexadecimal(scalar)
      default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
  }

  private mutating func appendHexadecimal(_ scalar: Unicode.Scalar) {
    bytes.append(contentsOf: "\\u".utf8)
    for shift in [12, 8, 4, 0] as [UInt32] {
      let digit = UInt8(scalar.value >> shift & 0xf)
      bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}

extension UInt8 {
  /// Visible ASCII or a space, and of no meaning inside of quotation marks.
  fileprivate var isPlain: Bool { self >= 0x20 && self < 0x7f && self != 0x22 && self != 0x5c }
}

extension Unicode.Scalar {
  /// Control characters, separators that some programs take for a new line, and what turns the direction of writing:
  /// all of them below U+10000.
  fileprivate var isHostileToTerminals: Bool {
    switch value {
    case 0..<0x20, 0x7f..<0xa0, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069, 0xfeff: true
    default: false
    }
  }
}
