import AccountEvents
import Cryptography
import EventLoop
import Foundation
import TestSupport
import Testing

/// A broker that takes clients over TLS alone, asks who they are (by PLAIN, SCRAM or a token), and lets nobody do what is not
/// granted. The tests have a way of their own to it, without any of that, as whoever may do all.
@Loop
final class SecureBroker {
  let broker: RealBroker
  /// Where the programs find it.
  private let address: SocketAddress
  private let certificate: String
  /// Whoever asks the broker reads its certificate there.
  private let files: TemporaryDirectory
  private nonisolated static let password = "a-password-of-the-tests"

  init(users: Set<String>, in files: TemporaryDirectory) async throws {
    self.files = files
    let pair = try SelfSignedCertificate(
      for: ["127.0.0.1"], validFrom: Timestamp.now.milliseconds / 1000 - 3600, seconds: 86_400)
    certificate = files.write("broker.pem", pair.certificatePEM)
    let keystore = files.write("broker-keystore.pem", pair.privateKeyPEM + pair.certificatePEM)
    let listener = "listener.name.sasl_ssl"
    broker = try await RealBroker(
      [
        "--add-scram=SCRAM-SHA-512=[name=somebody,password=\(Self.password)]",
        "listeners=PLAINTEXT://127.0.0.1:@port@,CONTROLLER://127.0.0.1:@controller@,SASL_SSL://127.0.0.1:@secure@",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name=PLAINTEXT",
        "\(listener).ssl.keystore.type=PEM", "\(listener).ssl.keystore.location=\(keystore)",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "\(listener).plain.sasl.jaas.config=\(Self.login("plain.PlainLoginModule", users))",
        "\(listener).scram-sha-512.sasl.jaas.config=\(Self.login("scram.ScramLoginModule"))",
        "\(listener).oauthbearer.sasl.jaas.config=\(Self.login("oauthbearer.OAuthBearerLoginModule"))",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found=false", "super.users=User:ANONYMOUS",
      ])
    let port = try #require(broker.bootstrapServers.split(separator: ":").last.flatMap { UInt16($0) })
    address = .loopback(port: port + 2)
  }

  private static func login(_ module: String, _ users: Set<String> = []) -> String {
    let options = users.sorted().map { " user_\($0)=\"\(password)\"" }.joined()
    return "org.apache.kafka.common.security.\(module) required\(options);"
  }

  /// How a program reaches the broker as one of the users, as librdkafka has it.
  func properties(as user: String, by mechanism: String = "PLAIN") -> [(String, String)] {
    way + [("sasl.mechanism", mechanism), ("sasl.username", user), ("sasl.password", Self.password)]
  }

  /// The same with the token of a file.
  func properties(withTokenIn file: String) -> [(String, String)] {
    way + [("sasl.mechanism", "OAUTHBEARER"), ("sasl.oauthbearer.token.file", file)]
  }

  private var way: [(String, String)] {
    [("bootstrap.servers", "\(address)"), ("security.protocol", "sasl_ssl"), ("ssl.ca.location", certificate)]
  }

  /// How a program reaches the broker as one of the users, in its environment.
  func environment(as user: String) -> [String: String] {
    Dictionary(
      properties(as: user).map { name, value in
        ("SIWA_KAFKA_\(name.uppercased().replacing(".", with: "_"))", value)
      }
    ) { first, _ in first }
  }
}
