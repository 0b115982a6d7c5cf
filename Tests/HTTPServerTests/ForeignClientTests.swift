import EventLoop
import HTTPServer
import TestSupport
import Testing

/// Other people's TLS and HTTP against the server.
@Suite(.timeLimit(.minutes(30))) struct ForeignClientTests {
  @Loop
  @Test(Python.isThere) func pythonAgrees() async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration) { request in
      guard await request.readBody(upTo: 65_536) == .complete else { return .text("no body", status: 400) }
      return .text(String(repeating: "y", count: request.withBody { $0.byteCount } + 1))
    }
    let script = Repository.root + "/Tests/HTTPServerTests/Python/tls-client.py"
    let outcome = try await run(
      Python.interpreter, [script, "\(server.server.address.port)", certificate.configuration.certificateFile])
    let answers = "200 1 200 6 200 10 200 60001"
    #expect(
      outcome.output == """
        TLSv1_2 TLSv1.2 http/1.1 \(answers)
        TLSv1_3 TLSv1.3 http/1.1 \(answers)
        TLSv1 TLSV1_ALERT_PROTOCOL_VERSION
        TLSv1_1 TLSV1_ALERT_PROTOCOL_VERSION
        another authority CERTIFICATE_VERIFY_FAILED
        only h2 refused
        no protocol accepted
        first new
        second reused

        """)
    #expect(outcome.isGood)
    await server.close()
  }

  @Loop
  @Test(arguments: [
    ["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3"], ["--http2"], ["--http1.0"],
    ["--tlsv1.3", "--expect100-timeout", "30"],
  ])
  func curlAgrees(_ options: [String]) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration) { request in
      guard await request.readBody(upTo: 65_536) == .complete else { return .text("no body", status: 400) }
      return .text("\(request.header("Expect") ?? "-") \(request.withBody { $0.byteCount })\n")
    }
    let expect = options.contains("--expect100-timeout") ? ["--header", "Expect: 100-continue"] : []
    let body = certificate.directory.write("body", String(repeating: "x", count: 50_000))
    let outcome = try await run(
      "curl",
      ["--silent", "--show-error", "--cacert", certificate.configuration.certificateFile, "--data-binary", "@\(body)"]
        + options + expect + [
          "https://localhost:\(server.server.address.port)/a", "https://localhost:\(server.server.address.port)/b",
        ])
    let line = expect.isEmpty ? "- 50000\n" : "100-continue 50000\n"
    #expect(outcome.output == line + line)
    #expect(outcome.isGood)
    await server.close()
  }

  @Loop
  @Test(arguments: [
    ("--tlsv1.0 --tls-max 1.0 --ciphers DEFAULT@SECLEVEL=0", "alert protocol version"),
    ("--tlsv1.1 --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0", "alert protocol version"),
    ("--cacert /etc/ssl/certs/ca-certificates.crt", "self-signed certificate"),
    ("--http2-prior-knowledge --no-alpn", "Empty reply"),
  ])
  func curlIsRefusedOrRefuses(_ options: String, _ reason: String) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let outcome = try await run(
      "curl",
      ["--silent", "--show-error", "--cacert", certificate.configuration.certificateFile]
        + options.split(separator: " ").map(String.init) + ["https://localhost:\(server.server.address.port)/"])
    #expect(!outcome.isGood)
    #expect(outcome.output.contains(reason), "\(outcome)")
    #expect(server.statistics.requests == 0)
    await server.close()
  }

  @Loop
  @Test(arguments: [
    ("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3"), ("-tls1_3 -groups P-256", "TLSv1.3"),
    ("-tls1_2 -cipher ECDHE+CHACHA20", "TLSv1.2"),
  ])
  func opensslAgrees(_ options: String, _ version: String) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let outcome = try await connect(server, certificate, options)
    #expect(outcome.output.contains("\(version), Cipher is "), "\(outcome)")
    #expect(outcome.output.contains("ALPN protocol: http/1.1"), "\(outcome)")
    #expect(outcome.output.contains("Verify return code: 0 (ok)"), "\(outcome)")
    #expect(outcome.output.contains("\r\n\r\nGET /s - "), "\(outcome)")
    await server.close()
  }

  @Loop
  @Test(arguments: [
    ("-tls1 -cipher ALL@SECLEVEL=0", "protocol version"), ("-tls1_1 -cipher ALL@SECLEVEL=0", "protocol version"),
    ("-tls1_2 -cipher AES128-SHA", "handshake failure"),
    ("-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256", "handshake failure"),
    ("-alpn h2", "no application protocol"),
  ])
  func opensslIsRefused(_ options: String, _ reason: String) async throws {
    let certificate = try TestCertificate()
    let server = try TestServer(tls: certificate.configuration, handler: echo)
    let outcome = try await connect(server, certificate, options)
    #expect(outcome.output.contains("alert \(reason)"), "\(outcome)")
    #expect(!outcome.isGood)
    let isOtherProtocol = options.hasPrefix("-alpn")
    #expect(server.statistics.handshakesFailed == (isOtherProtocol ? 0 : 1))
    #expect(server.statistics.protocolsRefused == (isOtherProtocol ? 1 : 0))
    await server.close()
  }

  /// What people who look for holes find: nothing old, nothing weak, nothing that was ever broken.
  @Loop
  @Test(Python.isThere, arguments: ["ECDSA", "RSA"]) func sslyzeFindsNothing(_ kind: String) async throws {
    let made = try TestCertificate()
    var certificate = made.configuration
    let directory = made.directory
    if kind == "RSA" {
      certificate = TLSServerConfiguration(
        certificateFile: directory.path + "/rsa.pem", privateKeyFile: directory.path + "/rsa-key.pem")
      let outcome = try await run(
        "openssl",
        ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-out"]
          + [certificate.certificateFile, "-keyout", certificate.privateKeyFile])
      #expect(outcome.isGood, "\(outcome)")
    }
    let server = try TestServer(tls: certificate, handler: echo)
    let script = Repository.root + "/Tests/HTTPServerTests/Python/scan-tls.py"
    let outcome = try await run(Python.interpreter, [script, "\(server.server.address.port)"])
    #expect(
      outcome.output == """
        TLS_1_2 TLS_ECDHE_\(kind)_WITH_AES_128_GCM_SHA256 TLS_ECDHE_\(kind)_WITH_AES_256_GCM_SHA384 \
        TLS_ECDHE_\(kind)_WITH_CHACHA20_POLY1305_SHA256
        TLS_1_3 TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256
        elliptic_curves: X25519 secp256r1 secp384r1
        heartbleed: False
        openssl_ccs_injection: False
        robot: NOT_VULNERABLE_RSA_NOT_SUPPORTED
        session_renegotiation: 0
        session_resumption: NOT_SUPPORTED by a session's name, FULLY_SUPPORTED by a ticket
        tls_1_3_early_data: False
        tls_compression: False
        tls_extended_master_secret: True
        tls_fallback_scsv: True

        """)
    #expect(outcome.isGood)
    await server.close()
  }

  @Loop
  private func connect(
    _ server: TestServer, _ certificate: TestCertificate, _ options: String
  ) async throws -> Outcome {
    let alpn = options.contains("-alpn") ? [] : ["-alpn", "http/1.1"]
    return try await run(
      "openssl",
      ["s_client", "-connect", "\(server.server.address)", "-servername", "localhost", "-CAfile"]
        + [certificate.configuration.certificateFile, "-ign_eof"] + alpn
        + options.split(separator: " ").map(String.init),
      input: "GET /s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
  }

  /// How a program ended and all that it wrote.
  private struct Outcome: CustomStringConvertible {
    let isGood: Bool
    let output: String
    var description: String { "\(isGood ? "good" : "failed"): \(output)" }
  }

  @Loop
  private func run(_ program: String, _ arguments: [String], input: String = "") async throws -> Outcome {
    let (end, output, errors) = try await RunningProgram.finish(path: program, arguments, input: input)
    return Outcome(isGood: end == .exit(0), output: output + errors)
  }
}
