import AppleSimulator
import EventLoop
import Kafka
import TestSupport
import Testing

/// Programs that everybody has deliver notifications to `siwa-ingress` over TLS.
@Loop @Suite(.serialized) struct OtherClientsTests {
  /// A client: what it is called with for a version of TLS, and what it then has on its input.
  enum Client: String, CaseIterable {
    case curl, openssl, python3

    @Loop func arguments(_ version: String, _ stage: Stage, _ ingress: RunningIngress, body: String) -> [String] {
      let port = ingress.address.port
      switch self {
      case .curl:
        let option = version.replacing("TLSv", with: "").replacing("_", with: ".")
        let exactly = ["--tlsv\(option == "1" ? "1.0" : option)", "--tls-max", option == "1" ? "1.0" : option]
        return [
          "--silent", "--show-error", "--cacert", stage.trustAnchor, "--data-binary", "@\(body)", "--write-out",
          "%{http_code}\n", "--ciphers", "DEFAULT@SECLEVEL=0", "https://localhost:\(port)\(Stage.path)",
        ] + exactly
      case .openssl:
        return [
          "s_client", "-quiet", "-verify_return_error", "-CAfile", stage.trustAnchor, "-connect", "localhost:\(port)",
          "-cipher", "DEFAULT@SECLEVEL=0", "-" + version.lowercased().replacing("v", with: ""),
        ]
      case .python3:
        return [
          Repository.root + "/Tests/EndToEndTests/Python/deliver.py", "\(port)", stage.trustAnchor, body, version,
        ]
      }
    }
  }

  private static func request(_ body: [UInt8]) -> String {
    """
    POST \(Stage.path) HTTP/1.1\r
    Host: localhost\r
    Content-Length: \(body.count)\r
    Connection: close\r
    \r
    \(String(decoding: body, as: UTF8.self))
    """
  }

  @Test(.timeLimit(.minutes(30)), arguments: Client.allCases)
  func deliverOverTheTLSOfToday(client: Client) async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress { ingress in
        try await ingress.untilReady()
        for version in ["TLSv1_2", "TLSv1_3"] {
          let notification = try stage.sign()
          let file = stage.files.write("body.json", notification.body)
          let arguments = client.arguments(version, stage, ingress, body: file)
          try await RunningProgram.run(path: client.rawValue, arguments) { program in
            if client == .openssl { try program.write(Self.request(notification.body)) }
            _ = try await program.outputLine(with: "200")
            let end = try await program.untilEnd()
            #expect(end == .exit(0), "\(program.errors)")
          }
          try await TopicReader.run(stage.brokers) { reader in
            _ = try await reader.record(of: notification.notification.jti)
          }
        }
      }
    }
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)), arguments: Client.allCases, ["TLSv1", "TLSv1_1"])
  func theTLSOfThePastIsRefused(client: Client, version: String) async throws {
    // Nobody needs a Kafka for that.
    try await Stage.run(brokers: "127.0.0.1:9") { stage in
      try await stage.ingress { ingress in
        let file = stage.files.write("body.json", try stage.sign().body)
        let arguments = client.arguments(version, stage, ingress, body: file)
        try await RunningProgram.run(path: client.rawValue, arguments) { program in
          let end = try await program.untilEnd()
          #expect(end != .exit(0))
          let words = program.errors.lowercased().replacing("_", with: " ")
          #expect(words.contains("alert protocol version"), "\(program.errors)")
          #expect(!program.output.contains("200"))
        }
        #expect(try await ingress.get("/metrics").text.contains("\nsiwa_http_handshakes_failed_total 1\n"))
      }
    }
  }
}
