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

  init(_ transport: Transport) { self.transport = transport }

  /// Sends an answer. True if the connection can take another request.
  func send(_ response: HTTPResponse, _ form: Form) async throws(Transport.Failure) -> Bool {
    switch response.body {
    case .bytes(let body): try await send(response, body, form)
    case .stream(let produce): try await send(response, produce, form)
    }
  }

  private func send(
    _ response: HTTPResponse, _ body: [UInt8], _ form: Form
  ) async throws(Transport.Failure) -> Bool {
    let hasContent = ResponseHead.hasContent(response.status)
    begin(response, hasContent ? .length(body.count) : .nothing, form)
    if hasContent, !form.isHead { out.append(contentsOf: body) }
    try await transport.write(out)
    if out.capacity > 16_384 { out = [] }
    return form.keepsAlive
  }

  private func send(
    _ response: HTTPResponse, _ produce: @Loop @Sendable (HTTPBodyWriter) async throws -> Void, _ form: Form
  ) async throws(Transport.Failure) -> Bool {
    var form = form
    let hasContent = ResponseHead.hasContent(response.status)
    // HTTP/1.0 has no chunks: the end of the connection is the end of the answer.
    if hasContent, !form.isHTTP11 { form.keepsAlive = false }
    begin(response, hasContent ? form.isHTTP11 ? .chunked : .close : .nothing, form)
    try await transport.write(out)
    guard hasContent, !form.isHead else { return form.keepsAlive }
    let writer = HTTPBodyWriter(transport, isChunked: form.isHTTP11)
    defer { writer.end() }
    do { try await produce(writer) } catch { throw .closed }
    if form.isHTTP11 { try await transport.write(Self.lastChunk) }
    return form.keepsAlive
  }

  private static let lastChunk = Array("0\r\n\r\n".utf8)

  private func begin(_ response: HTTPResponse, _ delimiter: ResponseHead.Delimiter, _ form: Form) {
    out.removeAll(keepingCapacity: true)
    ResponseHead.append(
      response, delimiter: delimiter, keepsAlive: form.keepsAlive, isHTTP11: form.isHTTP11, to: &out)
  }
}
