import HTTPServer
import JSON

/// Why an application does not get what it asked for (RFC 9457). Nothing of what it sent is in it.
struct Problem: Error {
  /// The closed list; `urn:siwa:problem:` and this is the type.
  enum Kind: String, CaseIterable {
    case notFound = "not-found"
    case wrongMethod = "wrong-method"
    case unauthorized
    case tooManyRequests = "too-many-requests"
    case malformed
    case tooLarge = "too-large"
    case tooSlow = "too-slow"
    case unsupportedHTTP = "unsupported-http"
    case unsupportedMediaType = "unsupported-media-type"
    case clientNotAllowed = "client-not-allowed"
    case identityTokenRefused = "identity-token-refused"
    case codeRefused = "code-refused"
    case idempotencyKeyReused = "idempotency-key-reused"
    case beginAgain = "begin-again"
    case authorizationEnded = "authorization-ended"
    case erased
    case unavailable
  }

  let kind: Kind
  let detail: String
  /// From a closed list of the kind's own.
  var reason: String?
  /// In whole seconds.
  var retryAfter: Int?
  /// What the path takes.
  var allowed: String?
  /// Where the kind leaves it open.
  private var httpStatus = 501

  init(_ kind: Kind, _ detail: String, reason: String? = nil, retryAfter: Int? = nil) {
    (self.kind, self.detail, self.reason, self.retryAfter) = (kind, detail, reason, retryAfter)
  }

  /// What the server does not take for a request of HTTP/1.1.
  init(_ refusal: MessageRefusal) {
    let kind: Kind =
      switch refusal.status {
      case 400: .malformed
      case 408: .tooSlow
      case 413: .tooLarge
      default: .unsupportedHTTP
      }
    self.init(kind, "\(refusal.reason)")
    httpStatus = refusal.status
  }

  /// The same request may succeed a little later.
  static func unavailable(_ detail: String, retryAfter: Int = 5) -> Problem {
    Problem(.unavailable, detail, retryAfter: retryAfter)
  }

  /// Only a new sign-in helps, with a new code.
  static func beginAgain(_ detail: String) -> Problem { Problem(.beginAgain, detail) }

  var status: Int {
    switch kind {
    case .malformed: 400
    case .unauthorized: 401
    case .clientNotAllowed: 403
    case .notFound: 404
    case .wrongMethod: 405
    case .beginAgain, .authorizationEnded: 409
    case .erased: 410
    case .tooSlow: 408
    case .tooLarge: 413
    case .unsupportedHTTP: httpStatus
    case .unsupportedMediaType: 415
    case .identityTokenRefused, .codeRefused, .idempotencyKeyReused: 422
    case .tooManyRequests: 429
    case .unavailable: 503
    }
  }

  private var title: String {
    switch kind {
    case .notFound: "There is nothing here"
    case .wrongMethod: "Not with this method"
    case .unauthorized: "A token of a caller is needed"
    case .tooManyRequests: "Too many requests"
    case .malformed: "The request is not of its form"
    case .tooLarge: "The request is too large"
    case .tooSlow: "The request did not come in time"
    case .unsupportedHTTP: "The request is not of the HTTP that is spoken here"
    case .unsupportedMediaType: "The body is not JSON"
    case .clientNotAllowed: "The caller may not act for this app"
    case .identityTokenRefused: "The identity token is not believed"
    case .codeRefused: "Apple does not take the authorization code"
    case .idempotencyKeyReused: "The Idempotency-Key belongs to another request"
    case .beginAgain: "The person has to sign in again"
    case .authorizationEnded: "The person's authorization has ended"
    case .erased: "The account was erased"
    case .unavailable: "Not now"
    }
  }

  /// The answer.
  var response: HTTPResponse {
    var members: [JSONValue.Member] = [
      .init("type", .string("urn:siwa:problem:\(kind.rawValue)")), .init("title", .string(title)),
      .init("status", .integer(Int64(status))), .init("detail", .string(detail)),
    ]
    if let reason { members.append(.init("reason", .string(reason))) }
    var response = HTTPResponse.json(JSONValue.object(members).bytes, status: status)
    response.headers = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")]
    if let retryAfter { response.headers.append(("Retry-After", String(retryAfter))) }
    if let allowed { response.headers.append(("Allow", allowed)) }
    if kind == .unauthorized { response.headers.append(("WWW-Authenticate", "Bearer")) }
    return response
  }
}
