public import Cryptography
public import EventLoop
public import HTTPServer

/// Our own server on loopback with a certificate that it made for itself, for tests of what talks to it.
@Loop
public final class TLSServer {
  /// The server, running.
  public nonisolated let server: HTTPServer
  /// A PEM file that makes a client believe it.
  public nonisolated let trustAnchors: String
  private let directory = TemporaryDirectory()

  /// Where it is, without a path.
  public nonisolated var origin: String { "https://\(server.address)" }

  /// Serves with the given certificate until `close`.
  public init(_ certificate: SelfSignedCertificate, handler: @escaping HTTPServer.Handler) throws {
    trustAnchors = directory.write("certificate.pem", certificate.certificatePEM)
    let key = directory.write("key.pem", certificate.privateKeyPEM)
    var configuration = HTTPServerConfiguration.plainOnLoopback
    configuration.tls = TLSServerConfiguration(certificateFile: trustAnchors, privateKeyFile: key)
    server = try HTTPServer(configuration, handler: handler)
    Task { [server] in await server.run() }
  }

  /// Closes all connections and returns when they are gone.
  public func close() async { await server.drain(within: .zero) }
}
