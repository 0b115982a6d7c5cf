package import EventLoop
import Glibc

/// A server that says exactly what a test wants said, byte by byte, and remembers what it was told.
@Loop
package final class ScriptedServer {
  /// What happens on each connection, from its first byte to its close.
  package typealias Script = @Loop (Peer) async -> Void

  /// Where it listens, on 127.0.0.1.
  package nonisolated let port: UInt16
  private let socket: ListeningSocket
  /// How many connections there were.
  package private(set) var connections = 0
  /// The requests, head and body, as they came.
  package private(set) var requests: [String] = []

  /// A server that does as the script says, on a free port.
  package init(_ script: @escaping Script) throws {
    socket = try ListeningSocket(.loopback(port: 0))
    port = socket.address.port
    Task { @Loop [self] in
      while let accepted = try? await socket.accept() {
        connections += 1
        guard let descriptor = try? Descriptor(owning: accepted.number) else { continue }
        Task { @Loop in
          await script(Peer(descriptor, of: self))
          descriptor.close()
        }
      }
    }
  }

  /// A server that gives the same answer to every request.
  package convenience init(answering answer: String) throws {
    try self.init { peer in
      while await peer.request() != nil { await peer.send(answer) }
    }
  }

  /// Takes no further connection.
  package func close() { socket.close() }

  /// One connection, as its script sees it.
  @Loop
  package final class Peer {
    private let descriptor: Descriptor
    private let server: ScriptedServer
    private var received: [UInt8] = []

    init(_ descriptor: Descriptor, of server: ScriptedServer) { (self.descriptor, self.server) = (descriptor, server) }

    /// The next request, head and body as they came; nil once the client has closed.
    package func request() async -> String? {
      while true {
        if let count = wholeRequest() {
          let text = String(decoding: received.prefix(count), as: UTF8.self)
          received.removeFirst(count)
          server.requests.append(text)
          return text
        }
        guard await receiveMore() else { return nil }
      }
    }

    /// Sends text; false once the client has closed.
    @discardableResult
    package func send(_ text: String) async -> Bool {
      var bytes = Array(text.utf8)[...]
      while !bytes.isEmpty {
        let sent = unsafe bytes.withUnsafeBytes {
          unsafe Glibc.send(descriptor.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        if sent > 0 {
          bytes = bytes.dropFirst(sent)
          continue
        }
        guard errno == EAGAIN else { return false }
        descriptor.clearWritable()
        guard await descriptor.untilWritable() == .ready else { return false }
      }
      return true
    }

    /// Waits until the client closes.
    package func untilClosed() async { while await receiveMore() {} }

    /// How many bytes the first request has, once all of it is here.
    private func wholeRequest() -> Int? {
      let mark = Array("\r\n\r\n".utf8)
      guard let end = received.indices.dropLast(3).first(where: { received[$0..<$0 + 4].elementsEqual(mark) }) else {
        return nil
      }
      let head = String(decoding: received[..<end], as: UTF8.self)
      let length = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length: ") }
      let count = end + 4 + (length.flatMap { Int($0.dropFirst("content-length: ".count)) } ?? 0)
      return received.count >= count ? count : nil
    }

    private func receiveMore() async -> Bool {
      var piece = [UInt8](repeating: 0, count: 16384)
      while true {
        let count = unsafe recv(descriptor.number, &piece, piece.count, 0)
        if count > 0 {
          received += piece.prefix(count)
          return true
        }
        guard count < 0, errno == EAGAIN else { return false }
        descriptor.clearReadable()
        guard await descriptor.untilReadable() == .ready else { return false }
      }
    }
  }
}
