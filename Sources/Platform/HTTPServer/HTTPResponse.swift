import EventLoop

/// What a handler answers.
public struct HTTPResponse: Sendable {
  /// How the body is given.
  public enum Body: Sendable {
    /// All at once; sent with its Content-Length.
    case bytes([UInt8])
    /// Piece by piece, by a function that is called when the head has been sent. What it throws ends the connection,
    /// so that the peer sees an incomplete answer instead of a complete wrong one.
    case stream(@Loop @Sendable (HTTPBodyWriter) async throws -> Void)
    /// The same for as long as the function likes: the deadline of the request ends with the head. Where the peer takes
    /// longer than `patience` for a piece, has ended its side or is gone, the function's task is cancelled and the
    /// connection ends. A draining server waits for the function, which is told by whoever has it drain.
    case endlessStream(patience: Duration, @Loop @Sendable (HTTPBodyWriter) async throws -> Void)
  }

  /// From 200 to 599. A 204 or 304 has no body, whatever is given.
  public var status: Int
  /// Names and values. `Content-Length`, `Transfer-Encoding`, `Connection` and `Date` are the server's own: to set
  /// one of them is a fault of ours and traps.
  public var headers: [(name: String, value: String)]
  /// What follows the head.
  public var body: Body
  /// Whether the connection ends after this answer.
  public var closesConnection = false

  /// An answer. Header names and values are the program's own: a line break in them is a fault of ours and traps.
  public init(status: Int, headers: [(name: String, value: String)] = [], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// An answer in plain text, for people.
  public static func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: .bytes(Array(text.utf8)))
  }

  /// An answer in JSON.
  public static func json(_ bytes: [UInt8], status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: [("Content-Type", "application/json")], body: .bytes(bytes))
  }

  static func refusal(_ refusal: MessageRefusal) -> HTTPResponse {
    text("\(refusal.reason)\n", status: refusal.status)
  }
}
