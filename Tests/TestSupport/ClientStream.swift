public import EventLoop

/// The client's side of a connection to a server under test, with TLS or without.
@Loop
public protocol ClientStream: AnyObject {
  /// What has come so far and was not yet taken.
  var received: [UInt8] { get set }
  /// Waits until at least one more byte has come. False at the end of what the server sends.
  func receive() async throws -> Bool
  /// Sends all of it, waiting for room.
  func send(_ bytes: some Sequence<UInt8>) async throws
}

/// What a test waited for did not come.
public struct ClientFailure: Error, CustomStringConvertible {
  /// What happened instead.
  public let description: String
}

extension ClientStream {
  /// Sends text as it is; line ends are the caller's.
  public func send(_ text: String) async throws { try await send(text.utf8) }

  /// Reads until `isEnough` says so and takes what has come. An end before that is a failure.
  @discardableResult
  public func read(until isEnough: ([UInt8]) -> Bool) async throws -> [UInt8] {
    while !isEnough(received) { try await more() }
    return take(received.count)
  }

  /// Reads until the server has ended its side, and takes what has come as text.
  @discardableResult
  public func readToEnd() async throws -> String {
    while try await receive() {}
    return String(decoding: take(received.count), as: UTF8.self)
  }

  /// Takes the first `count` of the bytes that have come.
  public func take(_ count: Int) -> [UInt8] {
    defer { received.removeFirst(count) }
    return Array(received[..<count])
  }

  /// Waits for more, and fails if there is none.
  func more() async throws {
    guard try await receive() else { throw ClientFailure(description: "the server closed after \(summary)") }
  }

  var summary: String { "\(received.count) bytes: \(String(decoding: received.prefix(500), as: UTF8.self))" }
}
