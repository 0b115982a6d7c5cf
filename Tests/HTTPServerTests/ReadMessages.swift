@testable import HTTPServer

/// What a stream of bytes was taken for.
struct ReadMessages: Equatable {
  struct Message: Equatable {
    var method: String
    var path: String
    var query: String?
    var fields: [String]
    var body: String
    var keepsAlive: Bool
    var expectsContinue: Bool

    init(
      _ method: String, _ path: String, query: String? = nil, fields: [String], body: String = "",
      keepsAlive: Bool = true, expectsContinue: Bool = false
    ) {
      (self.method, self.path, self.query, self.fields) = (method, path, query, fields)
      (self.body, self.keepsAlive, self.expectsContinue) = (body, keepsAlive, expectsContinue)
    }
  }

  enum End: Equatable {
    /// The last message is complete and nothing follows.
    case complete
    /// More bytes are expected.
    case incomplete
    case refused(MessageRefusal)
    /// The reader has no room for more: never to be.
    case stuck
  }

  var messages: [Message] = []
  var end = End.complete
  /// The messages once more, byte for byte.
  var exact: [ExactMessage] = []
  private var received = 0

  static let limits = HTTPServerLimits(head: 1024, fields: 8, body: 4096, connections: 1, connectionsPerAddress: 1)

  /// Reads `bytes` as a connection would that receives them in pieces of the given sizes; the last piece has the rest.
  init(_ bytes: [UInt8], pieces: [Int] = [], limits: HTTPServerLimits = Self.limits) {
    var reader = RequestReader(limits: limits)
    var start = 0
    for size in pieces + [bytes.count] where start < bytes.count {
      let piece = Array(bytes[start..<min(start + size, bytes.count)])
      start += piece.count
      guard take(piece, with: &reader) else { return }
    }
  }

  /// False when nothing more is read.
  private mutating func take(_ piece: [UInt8], with reader: inout RequestReader) -> Bool {
    var offset = 0
    while offset < piece.count {
      let count = unsafe reader.receive { room in
        let count = min(room.count, piece.count - offset)
        for index in 0..<count { unsafe room[index] = piece[offset + index] }
        return count
      }
      guard let count else {
        end = .stuck
        return false
      }
      offset += count
      received += count
      end = .incomplete
      while end == .incomplete, readOn(with: &reader) { end = reader.isEmpty ? .complete : .incomplete }
      if case .refused = end { return false }
    }
    return true
  }

  private var isInBody = false

  /// One message, if it is there.
  private mutating func readOn(with reader: inout RequestReader) -> Bool {
    if !isInBody {
      switch reader.readHead() {
      case .incomplete: return false
      case .refused(let refusal):
        end = .refused(refusal)
        return false
      case .complete: isInBody = true
      }
    }
    switch reader.readBody(limit: .max) {
    case .incomplete: return false
    case .refused(let refusal):
      end = .refused(refusal)
      return false
    case .complete: isInBody = false
    }
    var message = reader.withHead { head, bytes in
      Message(
        bytes.text(head.method), bytes.text(head.path), query: head.query.map { bytes.text($0) },
        fields: head.fields.map { "\(bytes.text($0.name)): \(bytes.text($0.value))" }, keepsAlive: head.keepsAlive,
        expectsContinue: head.expectsContinue)
    }
    message.body = reader.withBody { String(decoding: $0.bytes, as: UTF8.self) }
    messages.append(message)
    exact.append(ExactMessage(reader, end: received))
    reader.finish()
    return true
  }

  static func == (left: Self, right: Self) -> Bool { left.messages == right.messages && left.end == right.end }
}
