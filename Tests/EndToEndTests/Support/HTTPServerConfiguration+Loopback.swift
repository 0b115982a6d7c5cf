import EventLoop
import HTTPServer

extension HTTPServerConfiguration {
  /// A server of a test's own, without TLS, on a free port.
  static let plainOnLoopback = HTTPServerConfiguration(
    address: .loopback(port: 0), tls: nil,
    limits: HTTPServerLimits(head: 16_384, fields: 64, body: 65_536, connections: 64, connectionsPerAddress: 64),
    deadlines: HTTPServerDeadlines(
      handshake: .seconds(60), head: .seconds(60), body: .seconds(60), idle: .seconds(60), request: .seconds(60)),
    sharesPort: false)
}
