import Cryptography
import TestSupport
import Testing

@Suite struct SelfSignedCertificateTests {
  /// The `openssl` program trusts it as its own anchor, for these names and times alone.
  @Test(arguments: [
    (["-verify_hostname", "localhost", "-attime", "1700000100"], true),
    (["-verify_ip", "127.0.0.1", "-attime", "1700000100"], true),
    (["-verify_ip", "::1", "-attime", "1700000100"], true),
    (["-x509_strict", "-purpose", "sslserver", "-attime", "1700000100"], true),
    (["-verify_hostname", "example.com", "-attime", "1700000100"], false),
    (["-verify_ip", "127.0.0.2", "-attime", "1700000100"], false),
    (["-verify_hostname", "localhost", "-attime", "1699999999"], false),
    (["-verify_hostname", "localhost", "-attime", "1700003601"], false),
  ])
  func isValidForItsNamesAndItsTime(options: [String], isValid: Bool) async throws {
    let certificate = try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1", "::1"], validFrom: 1_700_000_000, seconds: 3600)
    let directory = TemporaryDirectory()
    let file = directory.write("certificate.pem", certificate.certificatePEM)
    let run = try await RunningProgram.finish(
      path: "/usr/bin/openssl", ["verify", "-CAfile", file] + options + [file])
    #expect((run.end == .exit(0)) == isValid)
  }

  @Test(arguments: [[], [""], ["a,DNS:b"], ["localhost", "x y"], ["1.2.3"], ["email:a@b"]])
  func refusesNamesThatAreNone(names: [String]) {
    #expect { try SelfSignedCertificate(for: names, validFrom: 0, seconds: 1) } throws: {
      ($0 as? CryptographyError)?.code == .certificateFailed
    }
  }

  @Test func noTwoAreTheSame() throws {
    let first = try SelfSignedCertificate(for: ["localhost"], validFrom: 0, seconds: 1)
    let second = try SelfSignedCertificate(for: ["localhost"], validFrom: 0, seconds: 1)
    #expect(first.certificatePEM != second.certificatePEM && first.privateKeyPEM != second.privateKeyPEM)
  }
}
