import EventLoop
public import HTTPServer

extension HTTPServerConfiguration {
  /// A server of a test's own, without TLS, on a free port. No deadline of its own ends what a slow machine takes.
  public static let plainOnLoopback = HTTPServerConfiguration(
    address: .loopback(port: 0), tls: nil,
    limits: HTTPServerLimits(head: 16_384, fields: 64, body: 1_048_576, connections: 256, connectionsPerAddress: 256),
    deadlines: HTTPServerDeadlines(
      handshake: .seconds(600), head: .seconds(600), body: .seconds(600), idle: .seconds(600), request: .seconds(600)),
    sharesPort: false)
}
