/// An HTTP answer as a client finds it, read by rules of its own and not by the server's.
public struct RawAnswer: Sendable, Equatable, CustomStringConvertible {
  /// `HTTP/1.1 200 OK`
  public let statusLine: String
  /// The lines below it.
  public let fields: [String]
  /// The body, without chunks.
  public let body: String

  /// The number in the status line, or 0.
  public var status: Int { Int(statusLine.split(separator: " ").dropFirst().first ?? "") ?? 0 }

  /// The value of the one field of this name, in any case of letters.
  public func field(_ name: String) -> String? {
    let values = fields.filter { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    guard values.count == 1, let value = values.first else { return nil }
    return String(value.drop { $0 != ":" }.dropFirst().drop { $0 == " " })
  }

  /// All of it.
  public var description: String { ([statusLine] + fields + ["", body]).joined(separator: "\n") }
}

extension ClientStream {
  /// Reads one answer: an interim one is one of its own. `toHead` says that no body follows whatever the head says.
  public func answer(toHead: Bool = false) async throws -> RawAnswer {
    let end = Array("\r\n\r\n".utf8)
    while index(of: end, from: 0) == nil { try await more() }
    let head = take((index(of: end, from: 0) ?? 0) + 4)
    let lines = String(decoding: head.dropLast(4), as: UTF8.self).split(separator: "\r\n").map(String.init)
    let answer = RawAnswer(statusLine: lines[0], fields: Array(lines.dropFirst()), body: "")
    if toHead || answer.status < 200 || answer.status == 204 || answer.status == 304 { return answer }
    let body: [UInt8]
    if let length = answer.field("Content-Length").flatMap({ Int($0) }) {
      body = try await taking(length)
    } else if answer.field("Transfer-Encoding") == "chunked" {
      body = try await chunks()
    } else {
      body = Array(try await readToEnd().utf8)
    }
    return RawAnswer(
      statusLine: answer.statusLine, fields: answer.fields, body: String(decoding: body, as: UTF8.self))
  }

  private func chunks() async throws -> [UInt8] {
    var body: [UInt8] = []
    while true {
      while index(of: [13, 10], from: 0) == nil { try await more() }
      let line = String(decoding: take((index(of: [13, 10], from: 0) ?? 0) + 2).dropLast(2), as: UTF8.self)
      guard let size = Int(line, radix: 16) else { throw ClientFailure(description: "no size of a chunk: \(line)") }
      body += try await taking(size)
      guard try await taking(2) == [13, 10] else { throw ClientFailure(description: "no end of a chunk") }
      if size == 0 { return body }
    }
  }

  private func taking(_ count: Int) async throws -> [UInt8] {
    while received.count < count { try await more() }
    return take(count)
  }

  private func index(of pattern: [UInt8], from start: Int) -> Int? {
    guard received.count >= start + pattern.count else { return nil }
    return (start...(received.count - pattern.count)).first {
      received[$0..<($0 + pattern.count)].elementsEqual(pattern)
    }
  }
}
