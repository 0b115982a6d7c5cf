import Cryptography
import EventLoop
import Foundation
import HTTPServer
import TestSupport
import Testing

/// A certificate for localhost and 127.0.0.1 in files of their own, gone with the value.
struct TestCertificate {
  let directory = TemporaryDirectory()
  let configuration: TLSServerConfiguration
  let pem: String

  init() throws {
    let certificate = try Self.another()
    pem = certificate.certificatePEM
    configuration = TLSServerConfiguration(
      certificateFile: directory.write("certificate.pem", certificate.certificatePEM),
      privateKeyFile: directory.write("key.pem", certificate.privateKeyPEM))
  }

  /// A new certificate with a new key, for the same names.
  static func another() throws -> SelfSignedCertificate {
    try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1"], validFrom: Int64(Date().timeIntervalSince1970) - 60, seconds: 3600)
  }

  /// The same for an RSA key, as PEM: the certificate and its key.
  @Loop
  static func ofRSA(in directory: TemporaryDirectory) async throws -> (certificate: String, key: String) {
    let (certificate, key) = (directory.path + "/rsa-certificate.pem", directory.path + "/rsa-key.pem")
    let (end, _, errors) = try await RunningProgram.finish(
      path: "openssl",
      ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext"]
        + ["subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", certificate, "-keyout", key])
    try #require(end == .exit(0), "\(errors)")
    return (
      try String(contentsOfFile: certificate, encoding: .utf8), try String(contentsOfFile: key, encoding: .utf8)
    )
  }
}
