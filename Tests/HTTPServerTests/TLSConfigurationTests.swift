import EventLoop
import Foundation
import TestSupport
import Testing

@testable import HTTPServer

/// What can be wrong with a server's configuration shows when it is made, in words that name it.
@Suite struct TLSConfigurationTests {
  @Loop
  private func failure(_ tls: TLSServerConfiguration) -> HTTPServerError? {
    do {
      _ = try TestServer(tls: tls, handler: echo)
      return nil
    } catch {
      return error as? HTTPServerError
    }
  }

  @Loop
  @Test func saysWhatIsWrongWithTheCertificate() throws {
    let certificate = try TestCertificate()
    var tls = certificate.configuration
    for (file, reason) in [
      (certificate.directory.path + "/none.pem", "no such file"),
      (certificate.directory.path, "no start line"),
      (certificate.directory.write("text.pem", "no certificate"), "no start line"),
      (tls.privateKeyFile, "no start line"),
    ] {
      tls.certificateFile = file
      let fault = try #require(failure(tls))
      #expect(fault.code == .certificate)
      #expect(fault.message.hasPrefix("the certificate \(file): "), "\(fault)")
      #expect(fault.message.lowercased().contains(reason), "\(fault)")
    }
  }

  @Loop
  @Test func saysWhatIsWrongWithTheKey() async throws {
    let (certificate, other) = (try TestCertificate(), try TestCertificate())
    var tls = certificate.configuration
    // Encrypted: nobody is there to type a pass phrase.
    let encrypted = certificate.directory.path + "/locked.pem"
    let (end, _, errors) = try await RunningProgram.finish(
      path: "openssl", ["pkey", "-in", tls.privateKeyFile, "-aes256", "-passout", "pass:secret", "-out", encrypted])
    #expect(end == .exit(0), "\(errors)")
    for (file, reason) in [
      (certificate.directory.path + "/none.pem", "no such file"),
      (certificate.directory.write("text.pem", "no key"), "unsupported"),
      (tls.certificateFile, "unsupported"),
      (other.configuration.privateKeyFile, "key values mismatch"),
      (encrypted, "interrupted or cancelled"),
    ] {
      tls.privateKeyFile = file
      let fault = try #require(failure(tls))
      #expect(fault.code == .privateKey)
      #expect(fault.message.hasPrefix("the private key \(file): "), "\(fault)")
      #expect(fault.message.lowercased().contains(reason), "\(fault)")
    }
  }

  /// OpenSSL keeps a pair for each kind of key, and takes a certificate of one kind beside a key of another.
  @Loop
  @Test func saysThatTheKeyIsOfAnotherKindThanTheCertificate() async throws {
    let certificate = try TestCertificate()
    let rsa = try await TestCertificate.ofRSA(in: certificate.directory)
    var (first, second) = (certificate.configuration, certificate.configuration)
    first.privateKeyFile = certificate.directory.write("k.pem", rsa.key)
    second.certificateFile = certificate.directory.write("c.pem", rsa.certificate)
    for tls in [first, second] {
      let fault = try #require(failure(tls))
      #expect(fault.code == .privateKey)
      #expect(
        fault.message
          == "the private key \(tls.privateKeyFile): of another kind than the certificate's (\(tls.certificateFile))")
    }
  }

  @Loop
  @Test func saysWhereItCannotListen() async throws {
    let taken = try TestServer(handler: echo)
    let address = taken.server.address
    let configuration = HTTPServerConfiguration(
      address: address, tls: nil, limits: .lenient(), deadlines: .lenient(), sharesPort: false)
    #expect(throws: HTTPServerError(code: .listen, message: "cannot listen on \(address): Address already in use")) {
      try HTTPServer(configuration, handler: echo)
    }
    await taken.close()
  }

  @Test func namesTheIssuerThatIsMissingInTheFile() async throws {
    let directory = TemporaryDirectory()
    let files = try await SignedCertificate(in: directory)
    let alone = TLSServerConfiguration(certificateFile: files.certificate, privateKeyFile: files.key)
    #expect(try alone.check() == "/CN=An authority")
    let both = try [files.certificate, files.issuer].map { try String(contentsOfFile: $0, encoding: .utf8) }.joined()
    let chain = directory.write("chain.pem", both)
    #expect(try TLSServerConfiguration(certificateFile: chain, privateKeyFile: files.key).check() == nil)
    let own = try TestCertificate()
    #expect(try own.configuration.check() == nil)
  }
}
