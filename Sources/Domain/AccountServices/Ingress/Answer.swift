package import AppleID
package import HTTPServer

/// What Apple is told. Only `accepted` lets Apple forget the notification; everything else makes it send again.
package enum Answer: Sendable, Equatable {
  /// Every in-sync replica has what the notification said, or the spool.
  case accepted
  /// No, and never: the notification is not Apple's, not for us, or broken.
  case refused(Refusal)
  /// Not now: nothing was decided, or nothing could be kept.
  case later(Cause)
  /// There is nothing at this path.
  case noSuchPath
  /// Notifications come by POST.
  case wrongMethod
  /// Larger than any notification of Apple's.
  case tooLarge
  /// The message itself was broken or too slow.
  case brokenMessage(MessageRefusal)
  /// The peer went away before its message was complete: this answer reaches nobody.
  case lost

  /// Why it is not now.
  package enum Cause: String, Sendable, CaseIterable {
    /// The signing key cannot be had at the moment.
    case keysUnavailable = "keys-unavailable"
    /// The log does not take records at the moment.
    case logUnavailable = "log-unavailable"
    /// The log may have taken the record, or not.
    case logUncertain = "log-uncertain"
  }

  /// The answer as HTTP; `retryAfter` in seconds stands in the answers that say "not now".
  package func response(retryAfter: Int) -> HTTPResponse {
    switch self {
    case .accepted: HTTPResponse(status: 200)
    case .refused(let refusal):
      // RFC 8935, section 2.3. Both texts are constants of ours: nothing of the request comes back.
      HTTPResponse(
        status: 400, headers: [("Content-Type", "application/json"), ("Content-Language", "en")],
        body: .bytes(
          Array("{\"err\":\"\(refusal.code.rawValue)\",\"description\":\"\(refusal.description)\"}".utf8)))
    case .later:
      HTTPResponse(status: 503, headers: [("Retry-After", "\(retryAfter)")])
    case .noSuchPath: .text("There is nothing here.\n", status: 404)
    case .wrongMethod:
      HTTPResponse(
        status: 405, headers: [("Allow", "POST"), ("Content-Type", "text/plain; charset=utf-8")],
        body: .bytes(Array("Notifications come by POST.\n".utf8)))
    case .tooLarge: .text("A notification is smaller than that.\n", status: 413)
    case .lost: HTTPResponse(status: 408)
    case .brokenMessage(let refusal): .text("\(refusal)\n", status: refusal.status)
    }
  }
}
