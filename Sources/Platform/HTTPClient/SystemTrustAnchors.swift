import CLibcurl
import Glibc

/// Where the operating system's trust anchors are: in a bundle, or else in a directory with a file for each name.
///
/// libcurl knows the distribution's places. The variables of OpenSSL, by which other programs find others, are curl's
/// business, not the library's. Never both: libcurl keeps a bundle parsed only where there is no directory to look into.
@safe struct SystemTrustAnchors: Sendable {
  let bundle: String?
  let directory: String?

  /// As this process found them at its first request.
  static let found = SystemTrustAnchors()

  private init() {
    func variable(_ name: String) -> String? {
      unsafe getenv(name).map { unsafe String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    let places = unsafe curl_version_info(CURLVERSION_SEVENTH)?.pointee
    let file = unsafe places?.cainfo.map { unsafe String(cString: $0) }
    if let named = variable("SSL_CERT_FILE") {
      (bundle, directory) = (named, variable("SSL_CERT_DIR"))
    } else if let named = variable("SSL_CERT_DIR") {
      (bundle, directory) = (nil, named)
    } else if let file, unsafe access(file, R_OK) == 0 {
      (bundle, directory) = (file, nil)
    } else {
      (bundle, directory) = (nil, unsafe places?.capath.map { unsafe String(cString: $0) })
    }
  }
}
