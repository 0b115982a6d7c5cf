public import EventLoop

/// Sends a streamed body, piece by piece, each as soon as it is given.
@Loop
public final class HTTPBodyWriter {
  /// The peer is gone or does not read: stop producing.
  public struct Lost: Error {}

  private var transport: Transport?
  private let isChunked: Bool
  /// Told when a piece begins to leave, and when it has left.
  private let onPiece: (@Loop (_ isLeaving: Bool) -> Void)?

  init(_ transport: Transport, isChunked: Bool, onPiece: (@Loop (_ isLeaving: Bool) -> Void)?) {
    (self.transport, self.isChunked, self.onPiece) = (transport, isChunked, onPiece)
  }

  /// Sends `bytes` and returns when the socket has taken them: a slow reader slows the writer.
  public func write(_ bytes: [UInt8]) async throws(Lost) {
    guard let transport else { throw Lost() }
    if bytes.isEmpty { return }
    onPiece?(true)
    do throws(Transport.Failure) {
      try await transport.write(isChunked ? Self.chunk(bytes) : bytes)
    } catch {
      throw Lost()
    }
    onPiece?(false)
  }

  private static func chunk(_ bytes: [UInt8]) -> [UInt8] {
    var chunk: [UInt8] = []
    chunk.reserveCapacity(bytes.count + 12)
    ResponseHead.append(number: bytes.count, radix: 16, to: &chunk)
    ResponseHead.append("\r\n", to: &chunk)
    chunk.append(contentsOf: bytes)
    ResponseHead.append("\r\n", to: &chunk)
    return chunk
  }

  func end() { transport = nil }
}
