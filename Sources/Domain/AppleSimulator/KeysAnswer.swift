/// What the keys endpoint answers. The raw value is its name on the command line.
package enum KeysAnswer: String, Sendable, CaseIterable {
  /// The key set.
  case keys
  /// The key set, as plain text.
  case otherType = "other-type"
  /// The key set with keys among it that are not for RS256 signatures, as Apple may have some day.
  case foreignKeys = "foreign-keys"
  /// The key set without one of its keys.
  case keyGone = "key-gone"
  /// The key set, in which the `kid` of one of Apple's keys names somebody else's.
  case otherKey = "other-key"
  /// A key set without keys.
  case none
  /// 503 with a page in HTML, as Apple's edge answers when something behind it fails.
  case unavailable
  /// 200 with a page in HTML, as a captive portal answers.
  case html
  /// 200 with bytes that mean nothing.
  case garbage
  /// 302 to the same path.
  case redirect
  /// Ten megabytes of JSON.
  case tenMegabytes = "ten-megabytes"
  /// The connection stays open and nothing comes.
  case silence
  /// The key set, a byte at a time: whoever reads all of it waits for minutes.
  case drip

  // Sets that must be refused whole.
  /// One `kid` twice.
  case kidTwice = "kid-twice"
  /// A key of 1024 bits among the others.
  case shortKey = "short-key"
  /// A public exponent of 3.
  case smallExponent = "small-exponent"
  /// A key whose `n` is no base64url.
  case malformedKey = "malformed-key"
  /// The set breaks off in the middle.
  case cutOff = "cut-off"
}
