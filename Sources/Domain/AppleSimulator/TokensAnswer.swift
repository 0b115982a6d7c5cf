/// What the token endpoint, the revocation endpoint or the migration endpoint answers. The raw value is its name on the
/// command line.
package enum TokensAnswer: String, Sendable, CaseIterable {
  /// What Apple answers.
  case tokens

  // Nothing is done.
  /// 503 with a page in HTML, as Apple's edge answers when something behind it fails.
  case unavailable
  /// 429, with a Retry-After: 30 seconds, unless the simulator was told otherwise.
  case throttled
  /// 400 `invalid_request`, for a reason that Apple keeps to itself.
  case refused
  /// 200 with a page in HTML, as a captive portal answers.
  case html
  /// 307 to the same path.
  case redirect
  /// The connection stays open and nothing comes.
  case silence

  // What was asked for is done, and whoever asked cannot know.
  /// The connection breaks in the middle of the answer.
  case lost
  /// 500 with a page in HTML.
  case failedLate = "failed-late"
  /// An answer of ten megabytes.
  case tenMegabytes = "ten-megabytes"
  /// Its first member, such as the access token, twice.
  case memberTwice = "member-twice"
  /// A number for its first member.
  case wrongKind = "wrong-kind"
  /// The answer breaks off in the middle, and its head says that it is whole.
  case cutOff = "cut-off"

  /// Whether it comes in the place of what was asked for.
  var isRefusal: Bool {
    switch self {
    case .unavailable, .throttled, .refused, .html, .redirect, .silence: true
    case .tokens, .lost, .failedLate, .tenMegabytes, .memberTwice, .wrongKind, .cutOff: false
    }
  }
}
