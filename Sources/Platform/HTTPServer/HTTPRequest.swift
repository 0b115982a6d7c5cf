public import EventLoop

/// One request, for as long as its handler runs. What it says is read from where it was received.
@Loop
public final class HTTPRequest {
  /// What became of a body that a handler asked for.
  public enum BodyResult: Sendable, Equatable {
    /// It is here.
    case complete
    /// It is larger than what was asked for, or broken: the handler may answer what it likes, the connection ends
    /// after that. The refusal is the answer that the server would give.
    case refused(MessageRefusal)
    /// The peer went away or took too long: no answer will reach it.
    case lost
  }

  /// Who sent it.
  public let peer: SocketAddress
  private var connection: HTTPConnection?

  init(_ connection: HTTPConnection, peer: SocketAddress) {
    self.connection = connection
    self.peer = peer
  }

  /// The method, in the case in which it was sent: methods are case-sensitive.
  public var method: String { withHead("") { head, bytes in bytes.text(head.method) } }

  /// The target's path as it was sent, percent-encoded; `*` for `OPTIONS *`.
  public var path: String { withHead("") { head, bytes in bytes.text(head.path) } }

  /// What follows the `?` of the target, if there is one.
  public var query: String? { withHead(nil) { head, bytes in head.query.map { bytes.text($0) } } }

  /// Whether the method is exactly this one.
  public func hasMethod(_ method: StaticString) -> Bool {
    withHead(false) { head, bytes in bytes.has(head.method, method) }
  }

  /// Whether the path is exactly these bytes.
  public func hasPath(_ path: [UInt8]) -> Bool {
    withHead(false) { head, bytes in
      guard head.path.count == path.count else { return false }
      for index in 0..<path.count where bytes[head.path.lowerBound + index] != path[index] { return false }
      return true
    }
  }

  /// The length that the head announced: 0 without a body, nil for a chunked one.
  public var announcedLength: Int? { connection?.reader.announcedLength }

  /// The first field of this name, in any case of letters, or nil.
  public func header(_ name: String) -> String? {
    withHead(nil) { head, bytes in
      let wanted = name.utf8.span
      for field in head.fields where Self.isNamed(wanted, field.name, bytes) { return bytes.text(field.value) }
      return nil
    }
  }

  /// Whether there are several fields of this name, in any case of letters: another reader may go by another one.
  public func repeatsHeader(_ name: String) -> Bool {
    withHead(false) { head, bytes in
      let wanted = name.utf8.span
      var count = 0
      for field in head.fields where Self.isNamed(wanted, field.name, bytes) { count += 1 }
      return count > 1
    }
  }

  private static func isNamed(_ wanted: Span<UInt8>, _ name: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
    guard name.count == wanted.count else { return false }
    for index in 0..<wanted.count
    where Characters.lowered(bytes[name.lowerBound + index]) != Characters.lowered(wanted[index]) {
      return false
    }
    return true
  }

  /// Waits for the whole body, `limit` bytes at most. Asks the peer to go on if it waits for that (100 Continue).
  public func readBody(upTo limit: Int) async -> BodyResult {
    if let result = readBodyAtOnce(upTo: limit) { return result }
    guard let connection else { return .lost }
    return await connection.readBody(limit: limit)
  }

  /// The same where the body is here already, as it mostly is; nil where `readBody` has to wait for it.
  public func readBodyAtOnce(upTo limit: Int) -> BodyResult? {
    guard let connection else { return .lost }
    return connection.readBodyAtOnce(limit: limit)
  }

  /// The body without a copy; empty before `readBody` has answered `.complete`.
  public func withBody<Value>(_ use: (RawSpan) throws -> Value) rethrows -> Value {
    guard let connection else { return try unsafe use([UInt8]().span.bytes) }
    return try connection.reader.withBody(use)
  }

  /// Called when the handler has answered: whoever still holds the request finds it empty.
  func end() { connection = nil }

  private func withHead<Value>(_ otherwise: Value, _ use: (RequestHead, Span<UInt8>) -> Value) -> Value {
    guard let connection else { return otherwise }
    return connection.reader.withHead(use)
  }
}
