package import JSON

/// Why a set of keys is not believed. One bad key for RS256 signatures is enough: the set that we have is better than
/// half of a new one.
package struct AppleKeySetError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong; the raw value is a metric label and a log key.
  package enum Code: String, Sendable, CaseIterable {
    /// No JSON, or not in the form of a JWK set (RFC 7517 §5).
    case malformed
    /// A set without keys, with which nothing could be verified.
    case empty
    /// More keys than Apple ever had by far.
    case tooManyKeys = "too-many-keys"
    /// `kid` is missing, too long, or not visible ASCII.
    case keyID = "key-id"
    /// Two keys have one `kid`.
    case duplicateKeyID = "duplicate-key-id"
    /// A `kid` names another key than it did in a set before.
    case changedKey = "changed-key"
    /// None of the keys is for RS256 signatures.
    case noneUsable = "none-usable"
    /// The modulus or the exponent is missing, or is no number in strict base64url.
    case number
    /// The modulus has fewer than 2048 bits, or more than 8192.
    case size
    /// The exponent is not 65537.
    case exponent
  }

  /// What is wrong.
  package let code: Code
  /// Which key is wrong, counted from 0; nil where it is the set.
  package let index: Int?
  /// What the reader of JSON found, where the text is malformed.
  package let cause: JSONError?

  init(_ code: Code, at index: Int? = nil, cause: JSONError? = nil) {
    (self.code, self.index, self.cause) = (code, index, cause)
  }

  /// A sentence for an operator; nothing of the set itself.
  package var description: String {
    let place = index.map { "key \($0 + 1) of the set" } ?? "the set"
    return switch code {
    case .malformed: "\(place) is no JWK set" + (cause.map { ": \($0)" } ?? "")
    case .empty: "\(place) holds no key"
    case .tooManyKeys: "\(place) holds more than \(AppleKeySet.maximumCount) keys"
    case .keyID: "\(place) has no usable kid"
    case .duplicateKeyID: "\(place) has the kid of another"
    case .changedKey: "\(place) has the kid of a key that we have, and is another"
    case .noneUsable: "\(place) holds no key for RS256 signatures (kty RSA, use sig, alg RS256)"
    case .number: "\(place) has a modulus or exponent that is no number"
    case .size:
      "\(place) has a modulus that is not of \(AppleKeySet.bitCounts.lowerBound) to \(AppleKeySet.bitCounts.upperBound) bits"
    case .exponent: "\(place) has another exponent than 65537"
    }
  }
}
