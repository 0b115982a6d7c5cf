import Testing

/// A certificate that an authority has signed, in files.
package struct SignedCertificate: Sendable {
  /// The certificate alone.
  package let certificate: String
  /// Its key.
  package let key: String
  /// The authority's certificate.
  package let issuer: String

  /// Makes both in `directory`.
  package init(in directory: TemporaryDirectory) async throws {
    func path(_ name: String) -> String { "\(directory.path)/\(name).pem" }
    (certificate, key, issuer) = (path("signed"), path("signed-key"), path("issuer"))
    let new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj"]
    for words in [
      ["/CN=An authority", "-out", issuer, "-keyout", path("issuer-key")],
      ["/CN=localhost", "-out", certificate, "-keyout", key, "-CA", issuer, "-CAkey", path("issuer-key")],
    ] {
      let (end, _, errors) = try await RunningProgram.finish(path: "openssl", new + words)
      try #require(end == .exit(0), "\(errors)")
    }
  }
}
