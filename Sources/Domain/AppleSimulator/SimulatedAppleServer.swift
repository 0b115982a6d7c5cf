import Cryptography
package import EventLoop
package import HTTPServer

/// A simulated Apple on a port of its own, on loopback only: whoever reaches it can have anything signed.
@Loop
package final class SimulatedAppleServer {
  /// Where it listens, with the real port.
  package nonisolated let address: SocketAddress
  /// Where the key set is.
  package nonisolated var keysURL: String { origin + "/auth/keys" }
  /// Where codes and refresh tokens are exchanged.
  package nonisolated var tokenURL: String { origin + "/auth/token" }
  /// Where apps send people who sign in.
  package nonisolated var authorizationURL: String { origin + "/auth/authorize" }
  /// Where people look after their Apple Account.
  package nonisolated var accountURL: String { origin + "/account" }
  /// Where tokens are revoked.
  package nonisolated var revocationURL: String { origin + "/auth/revoke" }

  /// Where users of an app that changes teams are moved.
  package nonisolated var migrationURL: String { origin + "/auth/usermigrationinfo" }

  private nonisolated let origin: String
  private let apple: SimulatedApple
  private let server: HTTPServer

  /// Binds the port, or a free one for 0; over TLS where a certificate is named. Throws what `HTTPServer` throws.
  package init(_ apple: SimulatedApple, port: UInt16, tls: TLSServerConfiguration?) throws(HTTPServerError) {
    server = try HTTPServer(
      HTTPServerConfiguration(
        address: .loopback(port: port), tls: tls,
        limits: HTTPServerLimits(head: 8192, fields: 64, body: 65_536, connections: 256, connectionsPerAddress: 256),
        deadlines: HTTPServerDeadlines(
          handshake: .seconds(60), head: .seconds(60), body: .seconds(60), idle: .seconds(60), request: .seconds(120)),
        sharesPort: false)
    ) { request in
      await apple.answer(request)
    }
    address = server.address
    origin = "\(tls == nil ? "http" : "https")://\(address)"
    self.apple = apple
  }

  /// Serves until the task is cancelled.
  package func run() async {
    await withTaskCancellationHandler {
      await server.run()
    } onCancel: {
      Task { @Loop in await server.drain(within: .seconds(1)) }
    }
    await apple.endTelling()
  }
}
