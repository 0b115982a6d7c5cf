package import AccountEvents
import Cryptography

extension NotificationVerifier {
  /// Judges once more a notification that was verified before and put aside, as its compact JWS: all that `verify` judges,
  /// except that its time may be over.
  ///
  /// What lies ahead of `now` still does: an event with a time in the future would outweigh all that happens until then.
  /// `key` finds the key of a name among those that verified something; Apple may have replaced it long ago.
  package func verifyAgain(
    _ jws: [UInt8], at now: Timestamp, key: (KeyID) -> AppleSigningKey?
  ) -> Verdict {
    guard jws.count <= UnverifiedNotification.maximumBodySize else { return .refused(.bodyTooLarge) }
    do {
      let notification = try UnverifiedNotification(jws: jws)
      guard let signingKey = key(notification.jws.keyID), let publicKey = signingKey.publicKey else {
        return .unknownKey(notification.jws.keyID)
      }
      guard notification.jws.isSigned(by: publicKey) else { return .refused(.wrongSignature) }
      return .verified(try believe(notification, by: signingKey, lastSeen: nil, at: now, acceptingLate: true))
    } catch {
      return .refused(error)
    }
  }
}

extension AppleSigningKey {
  /// The key that verifies; nil where the modulus is a number that cannot be an RSA key's.
  var publicKey: RSAPublicKey? {
    guard let modulus = Base64URL.decode(modulus) else { return nil }
    do throws(CryptographyError) {
      return try RSAPublicKey(modulus: modulus, exponent: [1, 0, 1])
    } catch {
      return nil
    }
  }
}
