import Cryptography
import Foundation
import HTTPServer
import TestSupport

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
}
