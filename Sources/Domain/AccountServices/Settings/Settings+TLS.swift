import Configuration
import Glibc
import HTTPServer

extension Settings {
  /// Refuses a certificate and a key that no server can be made with, and warns of one without its chain. Where one cannot
  /// be read, that was said already; what can be read once alone, such as a pipe, is left to the server.
  mutating func check(_ tls: TLSServerConfiguration, certificate: String, privateKey: String) {
    for path in [tls.certificateFile, tls.privateKeyFile] {
      var status = stat()
      guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, unsafe access(path, R_OK) == 0 else {
        return
      }
    }
    do throws(HTTPServerError) {
      guard let issuer = try tls.check() else { return }
      warn(
        certificate,
        "the certificate stands alone, without that of its issuer (\(issuer)): clients that neither have nor trust "
          + "it refuse the connection; wanted: the chain, which certbot calls fullchain.pem")
    } catch {
      refuse(error.code == .certificate ? certificate : privateKey, error.message)
    }
  }
}
