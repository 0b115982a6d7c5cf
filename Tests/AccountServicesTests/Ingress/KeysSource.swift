import AccountEvents
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import JSON

/// Apple's keys endpoint in a test's hand.
@Loop
final class KeysSource: AppleKeysSource {
  /// What every fetch gets.
  var answer: Result<[UInt8], AppleKeysFailure>
  /// How often it was asked.
  private(set) var fetches = 0
  /// What its clock says; nil where it does not say.
  var date: Timestamp?

  /// A source that answers the public part of these keys.
  init(_ keys: [SigningKey]) throws { answer = .success(try Self.set(keys)) }

  func fetch() async throws(AppleKeysFailure) -> AppleKeysAnswer {
    fetches += 1
    return AppleKeysAnswer(try answer.get(), date: date)
  }

  /// The keys as Apple writes them down.
  nonisolated static func set(_ keys: [SigningKey]) throws -> [UInt8] {
    let members: [JSONValue] = try keys.map { key in
      [
        "kty": "RSA", "kid": .string(key.kid), "use": "sig", "alg": "RS256",
        "n": .string(Base64URL.encode(try key.privateKey.modulus)),
        "e": .string(Base64URL.encode(try key.privateKey.exponent)),
      ]
    }
    return (["keys": .array(members)] as JSONValue).bytes
  }
}
