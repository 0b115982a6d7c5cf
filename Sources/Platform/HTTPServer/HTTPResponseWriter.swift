import EventLoop

/// Sends answers.
@Loop
final class HTTPResponseWriter {
  /// What the request decides about its answer's form.
  struct Form {
    var keepsAlive: Bool
    let isHTTP11: Bool
    let isHead: Bool
  }

  private let transport: Transport
  private var out: [UInt8] = []
  /// How much of it has left.
  private var sent = 0
  /// Told of an endless stream when a piece begins to leave, and when it has left and the next one is waited for.
  var onPiece: (@Loop (_ isLeaving: Bool) -> Void)?

  init(_ transport: Transport) { self.transport = transport }

  /// Begins an answer, and writes as much of it as the socket takes at once. True where that is all of it, as it mostly is;
  /// otherwise `finish` sends the rest, which of a stream is everything.
  func begin(_ response: HTTPResponse, _ form: Form) throws(Transport.Failure) -> Bool {
    guard case .bytes(let body) = response.body else { return false }
    let hasContent = ResponseHead.hasContent(response.status)
    append(response, hasContent ? .length(body.count) : .nothing, form)
    if hasContent, !form.isHead { out.append(contentsOf: body) }
    sent = try transport.writeAvailable(out, from: 0)
    guard sent == out.count else { return false }
    trim()
    return true
  }

  /// Sends what is left of an answer that has begun. True if the connection can take another request.
  func finish(_ response: HTTPResponse, _ form: Form) async throws(Transport.Failure) -> Bool {
    switch response.body {
    case .bytes:
      try await transport.write(out, from: sent)
      trim()
      return form.keepsAlive
    case .stream(let produce), .endlessStream(_, let produce):
      let hasContent = ResponseHead.hasContent(response.status)
      var form = form
      // HTTP/1.0 has no chunks: the end of the connection is the end of the answer.
      if hasContent, !form.isHTTP11 { form.keepsAlive = false }
      append(response, hasContent ? form.isHTTP11 ? .chunked : .close : .nothing, form)
      try await transport.write(out, from: 0)
      if hasContent, !form.isHead { try await stream(produce, isChunked: form.isHTTP11) }
      return form.keepsAlive
    }
  }

  /// Keeps no more memory between answers than most of them need.
  private func trim() { if out.capacity > 16_384 { out = [] } }

  private func stream(
    _ produce: @Loop @Sendable (HTTPBodyWriter) async throws -> Void, isChunked: Bool
  ) async throws(Transport.Failure) {
    let writer = HTTPBodyWriter(transport, isChunked: isChunked, onPiece: onPiece)
    defer { writer.end() }
    onPiece?(false)
    do { try await produce(writer) } catch { throw .closed }
    onPiece?(true)
    if isChunked { try await transport.write(Self.lastChunk) }
  }

  private static let lastChunk = Array("0\r\n\r\n".utf8)

  private func append(_ response: HTTPResponse, _ delimiter: ResponseHead.Delimiter, _ form: Form) {
    out.removeAll(keepingCapacity: true)
    ResponseHead.append(
      response, delimiter: delimiter, keepsAlive: form.keepsAlive, isHTTP11: form.isHTTP11, to: &out)
  }
}
