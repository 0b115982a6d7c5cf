import Cryptography
import EventLoop
import Foundation
import Glibc
import HTTPClient
import HTTPServer
import TestSupport
import Testing

/// Whom the client believes, over real TLS on loopback.
@Loop @Suite struct HTTPClientTLSTests {
  nonisolated static let year: Int64 = 365 * 86_400
  nonisolated static let now = Int64(Date().timeIntervalSince1970)

  private func failure(
    asking url: String, trusting anchors: HTTPClientConfiguration.TrustAnchors, connectTimeout: Duration = .seconds(300)
  ) async throws -> HTTPClientError? {
    var configuration = HTTPClientConfiguration.testing(trustAnchors: anchors)
    configuration.connectTimeout = connectTimeout
    let request = HTTPClientRequest.get(
      try #require(HTTPClientURL(url)), within: .seconds(300), maximumBodySize: 1000)
    do throws(HTTPClientError) {
      _ = try await HTTPClient(configuration).send(request)
      return nil
    } catch {
      return error
    }
  }

  @Test func believesAServerByItsTrustAnchor() async throws {
    let certificate = try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1"], validFrom: Self.now - 60, seconds: 3600)
    let server = try TLSServer(certificate) { request in .text(request.header("User-Agent") ?? "none") }
    let client = HTTPClient(.testing(trustAnchors: .systemAnd(file: server.trustAnchors)))
    for host in ["127.0.0.1", "localhost", "127.0.0.1", "localhost"] {
      let url = try #require(HTTPClientURL("https://\(host):\(server.server.address.port)/"))
      let answer = try await client.send(.get(url, within: .seconds(300), maximumBodySize: 100))
      #expect(answer.body == Array("siwa-tests/1".utf8))
    }
    #expect(server.server.statistics.accepted == 2)  // one connection for each name
    await server.close()
  }

  /// What a container with a company's authority has: a bundle, and no directory with a file for each name.
  @Test func theSystemsAnchorsMayBeABundleAlone() async {
    // In a process of its own: the environment belongs to all tests.
    await #expect(processExitsWith: .success) {
      try await HTTPClientTLSTests.askByTheEnvironment { files, certificate in
        unsafe setenv("SSL_CERT_FILE", files.write("bundle.pem", certificate.certificatePEM), 1)
      }
    }
  }

  @Test func writesNoSecretsOfItsConnectionsDown() async {
    await #expect(processExitsWith: .success) {
      try await HTTPClientTLSTests.askByTheEnvironment { files, certificate in
        unsafe setenv("SSL_CERT_FILE", files.write("bundle.pem", certificate.certificatePEM), 1)
        unsafe setenv("SSLKEYLOGFILE", files.path + "/secrets", 1)
      }
    }
  }

  /// Asks a server that the system's anchors know, in an environment that `prepare` makes.
  @Loop static func askByTheEnvironment(_ prepare: (TemporaryDirectory, SelfSignedCertificate) -> Void) async throws {
    let files = TemporaryDirectory()
    let certificate = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: now - 60, seconds: 3600)
    prepare(files, certificate)
    let server = try TLSServer(certificate) { _ in .text("hello") }
    let url = try #require(HTTPClientURL(server.origin))
    let answer = try await HTTPClient(.testing()).send(.get(url, within: .seconds(300), maximumBodySize: 100))
    try #require(answer.status == 200)
    try #require(unsafe access(files.path + "/secrets", F_OK) != 0)
    await server.close()
  }

  /// Certificates that are no reason to believe, though they are among the anchors.
  nonisolated static let certificates: [(names: [String], validFrom: Int64)] = [
    (["example.com"], now - 60), (["127.0.0.2"], now - 60), (["*.127.0.0.1"], now - 60),
    (["127.0.0.1"], now - 2 * year), (["127.0.0.1"], now + year),
  ]

  @Test(arguments: certificates)
  func refusesACertificateForAnotherHostOrTime(names: [String], validFrom: Int64) async throws {
    let certificate = try SelfSignedCertificate(for: names, validFrom: validFrom, seconds: 86_400)
    let server = try TLSServer(certificate) { _ in .text("never") }
    let error = try await failure(asking: server.origin, trusting: .systemAnd(file: server.trustAnchors))
    #expect(error?.code == .certificate)
    #expect(error?.isRetriable == false)
    #expect(server.server.statistics.requests == 0)
    await server.close()
  }

  @Test func refusesACertificateThatNobodyVouchesFor() async throws {
    let certificate = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: Self.now - 60, seconds: 3600)
    let other = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: Self.now - 60, seconds: 3600)
    let server = try TLSServer(certificate) { _ in .text("never") }
    let directory = TemporaryDirectory()
    let anchors = directory.write("other.pem", other.certificatePEM)
    #expect(try await failure(asking: server.origin, trusting: .system)?.code == .certificate)
    #expect(try await failure(asking: server.origin, trusting: .systemAnd(file: anchors))?.code == .certificate)
    #expect(server.server.statistics.requests == 0)
    await server.close()
  }

  @Test(arguments: [nil, "", "no certificate"])
  func saysThatTheTrustAnchorsCannotBeRead(contents: String?) async throws {
    let certificate = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: Self.now - 60, seconds: 3600)
    let server = try TLSServer(certificate) { _ in .text("never") }
    let directory = TemporaryDirectory()
    if let contents { _ = directory.write("anchors.pem", contents) }
    let error = try await failure(asking: server.origin, trusting: .systemAnd(file: directory.path + "/anchors.pem"))
    #expect(error?.code == .trustAnchors)
    await server.close()
  }

  @Test func saysThatTheServerSpeaksNoTLS() async throws {
    let server = try ScriptedServer { peer in
      await peer.send("HTTP/1.1 400 Bad Request\r\n\r\n")
    }
    defer { server.close() }
    #expect(try await failure(asking: "https://127.0.0.1:\(server.port)", trusting: .system)?.code == .tls)
  }

  @Test func countsTheHandshakeIntoTheConnectTimeout() async throws {
    let server = try ScriptedServer { await $0.untilClosed() }
    defer { server.close() }
    let error = try await failure(
      asking: "https://127.0.0.1:\(server.port)", trusting: .system, connectTimeout: .milliseconds(50))
    #expect(error?.code == .connect)
  }

  @Test(Python.isThere, arguments: [("TLSv1", true), ("TLSv1_1", true), ("TLSv1_2", false), ("TLSv1_3", false)])
  func speaksTLSFrom12On(version: String, isRefused: Bool) async throws {
    let certificate = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: Self.now - 60, seconds: 3600)
    let directory = TemporaryDirectory()
    let anchors = directory.write("certificate.pem", certificate.certificatePEM)
    let key = directory.write("key.pem", certificate.privateKeyPEM)
    let script = Repository.root + "/Tests/HTTPClientTests/Python/one-version.py"
    let error = try await RunningProgram.run(path: Python.interpreter, [script, anchors, key, version]) { server in
      let port = try #require(UInt16(try await server.outputLine()))
      return try await failure(asking: "https://127.0.0.1:\(port)", trusting: .systemAnd(file: anchors))
    }
    #expect(error?.code == (isRefused ? .tls : nil))
  }
}
