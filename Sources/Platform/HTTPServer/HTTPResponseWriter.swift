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
  /// Told of an endless stream when a piece begins to leave, and when it has left and the next one is waited for.
  var onPiece: (@Loop (_ isLeaving: Bool) -> Void)?

  init(_ transport: Transport) { self.transport = transport }

  /// Sends an answer. True if the connection can take another request.
  func send(_ response: HTTPResponse, _ form: Form) async throws(Transport.Failure) -> Bool {
    let hasContent = ResponseHead.hasContent(response.status)
    switch response.body {
    case .bytes(let body):
      begin(response, hasContent ? .length(body.count) : .nothing, form)
      if hasContent, !form.isHead { out.append(contentsOf: body) }
      // Most answers leave in one piece; only what does not is worth another call that may wait.
      let count = try transport.writeAvailable(out, from: 0)
      if count < out.count { try await transport.write(out, from: count) }
      if out.capacity > 16_384 { out = [] }
      return form.keepsAlive
    case .stream(let produce), .endlessStream(_, let produce):
      var form = form
      // HTTP/1.0 has no chunks: the end of the connection is the end of the answer.
      if hasContent, !form.isHTTP11 { form.keepsAlive = false }
      begin(response, hasContent ? form.isHTTP11 ? .chunked : .close : .nothing, form)
      try await transport.write(out, from: 0)
      if hasContent, !form.isHead { try await stream(produce, isChunked: form.isHTTP11) }
      return form.keepsAlive
    }
  }

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

  private func begin(_ response: HTTPResponse, _ delimiter: ResponseHead.Delimiter, _ form: Form) {
    out.removeAll(keepingCapacity: true)
    ResponseHead.append(
      response, delimiter: delimiter, keepsAlive: form.keepsAlive, isHTTP11: form.isHTTP11, to: &out)
  }
}
