import TestSupport

@testable import HTTPServer

/// What peers say on a connection, and worse: `Corpus/requests.txt`.
///
/// One connection a line: what becomes of it, `|`, and its bytes, with the escapes `\r`, `\n`, `\t`, `\\` and `\xHH`.
/// What becomes of it is the number of requests that are accepted, and then the status with which the next one is
/// refused, or `more` if it is not complete.
struct Corpus {
  struct Line: Sendable {
    let number: Int
    let verdict: String
    let bytes: [UInt8]
  }

  static let limits = HTTPServerLimits(
    head: 16_384, fields: 64, body: 65_536, connections: 1, connectionsPerAddress: 1)

  let lines: [Line]

  init() throws {
    let bytes = try Repository.bytes("Tests/HTTPServerTests/Corpus/requests.txt")
    var lines: [Line] = []
    for (index, text) in bytes.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated() {
      guard let bar = text.firstIndex(of: UInt8(ascii: "|")), text.first != UInt8(ascii: "#") else { continue }
      lines.append(
        Line(
          number: index + 1, verdict: String(decoding: text[..<bar], as: UTF8.self),
          bytes: Self.unescaped(text[(bar + 1)...])))
    }
    self.lines = lines
  }

  /// The verdict on what was read, in the words of the file.
  static func verdict(_ read: ReadMessages) -> String {
    let count = "\(accepted(read).count)"
    if accepted(read).last?.closes == true { return count }
    return switch read.end {
    case .complete: count
    case .incomplete, .stuck: "\(count) more"
    case .refused(let refusal): "\(count) \(refusal.status)"
    }
  }

  /// The messages up to the one that ends the connection.
  static func accepted(_ read: ReadMessages) -> [ExactMessage] {
    let last = read.exact.firstIndex { $0.closes } ?? read.exact.endIndex
    return Array(read.exact.prefix(last + 1))
  }

  private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "r"): bytes.append(0x0d)
      case UInt8(ascii: "n"): bytes.append(0x0a)
      case UInt8(ascii: "t"): bytes.append(0x09)
      case UInt8(ascii: "\\"): bytes.append(UInt8(ascii: "\\"))
      case UInt8(ascii: "x"):
        guard let byte = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else { fallthrough }
        bytes.append(byte)
        rest = rest.dropFirst(2)
      default: preconditionFailure("an unknown escape in \(String(decoding: text, as: UTF8.self))")
      }
    }
    return bytes
  }
}
