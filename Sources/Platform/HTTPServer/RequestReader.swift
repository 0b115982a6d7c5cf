/// Turns the bytes of a connection into requests. It does no input or output itself.
///
/// One buffer holds what was received and not yet answered: the head first, its body behind it in one piece, then
/// whatever the peer has already sent of the next request. The buffer grows only as far as the limits let one request
/// grow, and is given back while the connection is idle.
struct RequestReader: ~Copyable {
  enum Body: Equatable {
    case incomplete
    case complete
    case refused(MessageRefusal)
  }

  private enum BodyState {
    case unread
    case chunks(ChunkReader)
    case complete
    /// For good: the framing was half taken off in place, and reading it again would find another message.
    case refused(MessageRefusal)
  }

  static let initialCapacity = 4096

  private let limits: HTTPServerLimits
  private var storage: [UInt8] = []
  private var end = 0
  private var reader: HeadReader
  private(set) var head = RequestHead()
  private var headEnd = 0
  private var body = BodyState.unread
  private var bodyEnd = 0
  /// Where the next message begins.
  private var next = 0

  init(limits: HTTPServerLimits) {
    self.limits = limits
    reader = HeadReader(limit: limits.head, fieldLimit: limits.fields)
  }

  /// Nothing of a next request has arrived.
  var isEmpty: Bool { end == 0 }

  /// What the head says, beside the bytes that its places are in.
  func withHead<Value>(_ use: (RequestHead, Span<UInt8>) throws -> Value) rethrows -> Value {
    try use(head, storage.span)
  }

  /// The body; empty before it is complete.
  func withBody<Value>(_ use: (RawSpan) throws -> Value) rethrows -> Value {
    try unsafe use(storage.span.extracting(headEnd..<bodyEnd).bytes)
  }

  /// Calls `fill` with free room for at least one byte and takes in as many bytes as it says that it wrote. Without
  /// room, which only a message at its limit can bring about, `fill` is not called and the answer is nil.
  mutating func receive<Failure>(
    _ fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
  ) throws(Failure) -> Int? {
    if end == storage.count {
      let largest = limits.head + limits.body + Self.initialCapacity
      let size = min(largest, max(Self.initialCapacity, storage.count * 2))
      guard size > storage.count else { return nil }
      storage.append(contentsOf: repeatElement(0, count: size - storage.count))
    }
    let start = end
    // Not withUnsafeMutableBytes on a slice: the array itself, so that nothing is copied.
    var count = 0
    var failure: Failure?
    unsafe storage.withUnsafeMutableBytes { all in
      do throws(Failure) { count = unsafe try fill(UnsafeMutableRawBufferPointer(rebasing: all[start...])) } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    end += count
    return count
  }

  /// Reads on in the head of the current message.
  mutating func readHead() -> HeadReader.Step {
    let received = storage  // a second reference, not a copy: a span of `self` would hold all of it
    let step = reader.read(received.span, end: end, into: &head)
    if case .complete(let offset) = step {
      headEnd = offset
      bodyEnd = offset
      next = offset
      if head.framing == .none || head.framing == .length(0) { body = .complete }
    }
    return step
  }

  /// Whether the message has come to its end, so that the next one can begin.
  var isComplete: Bool { if case .complete = body { true } else { false } }

  /// How many bytes the body will have, if its head said so.
  var announcedLength: Int? {
    switch head.framing {
    case .none: 0
    case .length(let length): length
    case .chunked: nil
    }
  }

  /// Reads on in the body, which may hold `limit` bytes at most.
  mutating func readBody(limit: Int) -> Body {
    let limit = min(limit, limits.body)
    switch (body, head.framing) {
    case (.complete, _): return .complete
    case (.refused(let refusal), _): return .refused(refusal)
    case (.unread, .none): preconditionFailure("a message without a body is complete with its head")
    case (.unread, .length(let length)):
      guard length <= limit else { return refuse(Self.tooLarge) }
      guard end - headEnd >= length else { return .incomplete }
      bodyEnd = headEnd + length
      next = bodyEnd
      body = .complete
      return .complete
    case (.unread, .chunked):
      return readChunks(ChunkReader(start: headEnd), limit)
    case (.chunks(let chunks), _):
      return readChunks(chunks, limit)
    }
  }

  private static let tooLarge = MessageRefusal(status: 413, reason: "the body is too large")

  private mutating func readChunks(_ chunks: ChunkReader, _ limit: Int) -> Body {
    var chunks = chunks
    let (end, headEnd) = (end, headEnd)
    let step = mutate { bytes in chunks.read(&bytes, end: end, start: headEnd, limit: limit) }
    switch step {
    case .incomplete:
      // All framing so far is behind us: what follows goes right behind the data.
      self.end = chunks.bodyEnd
      chunks.compacted()
      body = .chunks(chunks)
      return .incomplete
    case .complete(let offset):
      bodyEnd = chunks.bodyEnd
      next = offset
      body = .complete
      return .complete
    case .refused(let refusal): return refuse(refusal)
    }
  }

  private mutating func refuse(_ refusal: MessageRefusal) -> Body {
    body = .refused(refusal)
    return .refused(refusal)
  }

  private mutating func mutate<Value>(_ body: (inout MutableSpan<UInt8>) -> Value) -> Value {
    var taken: [UInt8] = []
    swap(&taken, &storage)
    defer { swap(&taken, &storage) }
    var bytes = taken.mutableSpan
    return body(&bytes)
  }

  /// Forgets the message that was answered; what has arrived behind it becomes the beginning of the next.
  mutating func finish() {
    let left = end - next
    if left > 0, next > 0 {
      let next = next
      mutate { bytes in for offset in 0..<left { bytes[offset] = bytes[next + offset] } }
    }
    end = left
    (headEnd, bodyEnd, next) = (0, 0, 0)
    body = .unread
    head.reset()
    reader.reset()
    if end == 0, storage.count > Self.initialCapacity { storage = [] }
  }

  /// Gives the buffer back if nothing is in it, while nothing is expected soon.
  mutating func release() {
    if isEmpty { storage = [] }
  }
}
