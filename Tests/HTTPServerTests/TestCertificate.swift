import Cryptography
import Foundation
import HTTPServer
import TestSupport

/// A certificate for localhost and 127.0.0.1 in files of their own, gone with the value.
struct TestCertificate {
  let directory = TemporaryDirectory()
  let configuration: TLSServerConfiguration

  init() throws {
    let certificate = try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1"], validFrom: Int64(Date().timeIntervalSince1970) - 60, seconds: 3600)
    configuration = TLSServerConfiguration(
      certificateFile: directory.write("certificate.pem", certificate.certificatePEM),
      privateKeyFile: directory.write("key.pem", certificate.privateKeyPEM))
  }
}
