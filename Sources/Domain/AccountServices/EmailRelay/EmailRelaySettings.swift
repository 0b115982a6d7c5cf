package import Configuration
package import EventLoop
package import HTTPServer

/// Where mailers ask.
package struct EmailRelaySettings: Configurable {
  /// The address.
  package var listen: SocketAddress
  /// The certificate; nil for plain HTTP on loopback.
  package var tls: TLSServerConfiguration?
  /// What mailers have to show.
  package var token: Secret

  /// Reads `email-relay`.
  package init(reading settings: inout Settings) {
    listen = settings.read(
      "email-relay.listen", .socketAddress, default: .loopback(port: 8446),
      "Where mailers ask whether they may send; beyond loopback with a certificate only.")
    let certificate = settings.readIfPresent(
      "email-relay.certificate", .file(), "The certificate and its chain for mailers, PEM.")
    let privateKey = settings.readIfPresent(
      "email-relay.private-key", .file(isPrivate: true), "The certificate's private key, PEM, not encrypted.")
    token = settings.read(
      "email-relay.token", .secret, "What mailers have to show: Authorization: Bearer and this. At least 32 characters."
    )
    if let certificate, let privateKey {
      let files = TLSServerConfiguration(certificateFile: certificate, privateKeyFile: privateKey)
      settings.check(files, certificate: "email-relay.certificate", privateKey: "email-relay.private-key")
      tls = files
    } else if certificate != nil || privateKey != nil {
      let missing = certificate == nil ? "certificate" : "private-key"
      settings.refuse("email-relay.\(missing)", "missing; the certificate and its key belong together")
    } else if !listen.isLoopback {
      settings.refuse("email-relay.listen", "beyond loopback the token wants TLS: set certificate and private-key")
    }
    if !(32...4096 ~= token.revealed.utf8.count && token.revealed.utf8.allSatisfy { 0x21...0x7e ~= $0 }) {
      settings.refuse("email-relay.token", "expected 32 to 4096 visible ASCII characters")
    }
  }
}
