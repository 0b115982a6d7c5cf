import AppleSimulator
import Cryptography

extension SigningKey {
  /// A key with a `kid` of the test's choice.
  static func forTests(_ kid: String) -> SigningKey {
    do {
      return SigningKey(kid: kid, key: try RSAPrivateKey(bitCount: 2048))
    } catch {
      preconditionFailure("OpenSSL makes no key: \(error)")
    }
  }
}
