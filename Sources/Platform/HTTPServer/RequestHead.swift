/// How a request's body is delimited (RFC 9112, section 6).
enum Framing: Equatable {
  case none
  case length(Int)
  case chunked
}

/// Why a message was refused before any handler saw it. The connection is closed after the answer.
public struct MessageRefusal: Sendable, Equatable, CustomStringConvertible {
  /// The status of the answer: 400, 408, 413, 417, 431, 501 or 505.
  public let status: Int
  /// One constant sentence, without anything that the peer sent.
  public let reason: StaticString

  static func bad(_ reason: StaticString) -> MessageRefusal { MessageRefusal(status: 400, reason: reason) }

  /// Whether status and reason are the same.
  public static func == (left: Self, right: Self) -> Bool {
    left.status == right.status && left.description == right.description
  }

  /// The reason as text.
  public var description: String { reason.description }
}

/// What a request's head said. Names and values stay where they were received: these are places in that buffer.
struct RequestHead {
  struct Field {
    var name: Range<Int>
    var value: Range<Int>
  }

  var method = 0..<0
  var path = 0..<0
  var query: Range<Int>?
  var isHTTP11 = true
  var fields: [Field] = []
  var framing = Framing.none
  var keepsAlive = true
  var expectsContinue = false
  var hasHost = false
  var hasTransferEncoding = false
  var hasContentLength = false
  var hasClose = false

  /// Forgets everything but the storage of the fields.
  mutating func reset() {
    var fields: [Field] = []
    // The only reference to the storage, so that it is kept.
    swap(&fields, &self.fields)
    fields.removeAll(keepingCapacity: true)
    self = RequestHead()
    swap(&fields, &self.fields)
  }
}
