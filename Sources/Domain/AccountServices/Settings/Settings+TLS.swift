import Configuration
import Glibc
import HTTPServer

extension Settings {
  /// Refuses a certificate and a key that no server can be made with. Where one cannot be read, that was said already.
  mutating func check(_ tls: TLSServerConfiguration, certificate: String, privateKey: String) {
    guard unsafe access(tls.certificateFile, R_OK) == 0, unsafe access(tls.privateKeyFile, R_OK) == 0 else { return }
    do throws(HTTPServerError) {
      try tls.check()
    } catch {
      refuse(error.code == .certificate ? certificate : privateKey, error.message)
    }
  }
}
