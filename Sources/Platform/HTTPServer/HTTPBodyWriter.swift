public import EventLoop

/// Sends a streamed body, piece by piece, each as soon as it is given.
@Loop
public final class HTTPBodyWriter {
  /// The peer is gone or does not read: stop producing.
  public struct Lost: Error {}

  private var transport: Transport?
  private let isChunked: Bool

  init(_ transport: Transport, isChunked: Bool) {
    self.transport = transport
    self.isChunked = isChunked
  }

  /// Sends `bytes` and returns when the socket has taken them: a slow reader slows the writer.
  public func write(_ bytes: [UInt8]) async throws(Lost) {
    guard let transport else { throw Lost() }
    if bytes.isEmpty { return }
    do {
      guard isChunked else { return try await transport.write(bytes) }
      var chunk: [UInt8] = []
      chunk.reserveCapacity(bytes.count + 12)
      ResponseHead.append(number: bytes.count, radix: 16, to: &chunk)
      ResponseHead.append("\r\n", to: &chunk)
      chunk.append(contentsOf: bytes)
      ResponseHead.append("\r\n", to: &chunk)
      try await transport.write(chunk)
    } catch {
      throw Lost()
    }
  }

  func end() { transport = nil }
}
