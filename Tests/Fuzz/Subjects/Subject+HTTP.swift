@testable import HTTPServer

extension Subject {
  /// What a connection's bytes are taken for does not hang on the pieces in which they come; and what was taken for a
  /// message is the same message when it is written plainly, so that whoever reads it after us sees no other.
  static func checkHTTP(_ bytes: [UInt8]) throws(BrokenPromise) {
    let limits = HTTPServerLimits(head: 1024, fields: 8, body: 4096, connections: 1, connectionsPerAddress: 1)
    let whole = Conversation(bytes, limits) { _ in bytes.count }
    try promise("a message at its limits is refused, not waited for", whole.end != .stuck)
    try promise("byte by byte it is the same", Conversation(bytes, limits) { _ in 1 } == whole)
    let uneven = Conversation(bytes, limits) { place in 1 + (place * 7 + Int(bytes[place])) % 61 }
    try promise("in uneven pieces it is the same", uneven == whole)

    // Fields get a blank before their values: a little more room.
    let room = HTTPServerLimits(head: 2048, fields: 8, body: 4096, connections: 1, connectionsPerAddress: 1)
    for message in whole.messages {
      let written = message.bytes
      let again = Conversation(written, room) { _ in written.count }
      try promise(
        "written plainly it is the same message, and no other",
        again.messages == [message] && again.end == .complete)
    }
  }
}

/// What the bytes of a connection are taken for.
private struct Conversation: Equatable {
  enum End: Equatable {
    case complete, incomplete, stuck
    case refused(MessageRefusal)
  }

  private(set) var messages: [Message] = []
  private(set) var end = End.complete

  /// Reads as a connection does that receives pieces; `size` says how long the one is that begins at a place.
  init(_ bytes: [UInt8], _ limits: HTTPServerLimits, _ size: (Int) -> Int) {
    var reader = RequestReader(limits: limits)
    var isInBody = false
    var place = 0
    while place < bytes.count {
      let piece = bytes[place..<min(place + size(place), bytes.count)]
      let count = unsafe reader.receive { room in
        let count = min(room.count, piece.count)
        for offset in 0..<count { unsafe room[offset] = bytes[place + offset] }
        return count
      }
      guard let count else {
        end = .stuck
        return
      }
      place += count
      end = .incomplete
      while end == .incomplete, let state = readOn(&reader, &isInBody) { end = state }
      if case .refused = end { return }
    }
  }

  /// Reads one message: how things stand then, or nil where it is not all there.
  private mutating func readOn(_ reader: inout RequestReader, _ isInBody: inout Bool) -> End? {
    if !isInBody {
      switch reader.readHead() {
      case .incomplete: return nil
      case .refused(let refusal): return .refused(refusal)
      case .complete: isInBody = true
      }
    }
    switch reader.readBody(limit: .max) {
    case .incomplete: return nil
    case .refused(let refusal): return .refused(refusal)
    case .complete: isInBody = false
    }
    messages.append(Message(reader))
    reader.finish()
    return reader.isEmpty ? .complete : .incomplete
  }
}

private struct Message: Equatable {
  private let method, target: [UInt8]
  private let fields: [[[UInt8]]]
  private let body: [UInt8]
  private let isHTTP11, isChunked, keepsAlive, expectsContinue: Bool

  init(_ reader: borrowing RequestReader) {
    let head = reader.head
    func part(_ range: Range<Int>) -> [UInt8] { reader.withHead { _, bytes in range.map { bytes[$0] } } }
    method = part(head.method)
    target = part(head.path) + (head.query.map { [UInt8(ascii: "?")] + part($0) } ?? [])
    fields = head.fields.map { [part($0.name), part($0.value)] }
    body = reader.withBody { bytes in
      (0..<bytes.byteCount).map { unsafe bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    }
    (isHTTP11, isChunked) = (head.isHTTP11, head.framing == .chunked)
    (keepsAlive, expectsContinue) = (head.keepsAlive, head.expectsContinue)
  }

  /// The message without what RFC 9112 leaves to whoever writes it.
  var bytes: [UInt8] {
    var bytes = method + [0x20] + target + Array(" HTTP/1.\(isHTTP11 ? 1 : 0)\r\n".utf8)
    for field in fields { bytes += field[0] + Array(": ".utf8) + field[1] + Array("\r\n".utf8) }
    bytes += Array("\r\n".utf8)
    guard isChunked else { return bytes + body }
    if !body.isEmpty { bytes += Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n".utf8) }
    return bytes + Array("0\r\n\r\n".utf8)
  }
}
