import HTTPServer

extension HTTPRequest {
  /// Whether a browser says that another site's page has made it send this. What is no browser says nothing of the kind, and
  /// can be believed no less than its user.
  var isFromElsewhere: Bool {
    if let site = header("Sec-Fetch-Site") { return site != "same-origin" && site != "none" }
    guard let origin = header("Origin") else { return false }
    guard let host = header("Host") else { return true }
    return origin != "https://\(host)" && origin != "http://\(host)"
  }
}
