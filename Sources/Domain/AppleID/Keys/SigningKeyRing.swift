package import AccountEvents
import Cryptography

/// The keys of Apple's that ever verified something, ready to verify again what they signed.
package struct SigningKeyRing: Sendable {
  /// The most keys that are kept. Apple had 1 to 4 at a time over the years.
  package static let maximumCount = 1024

  private struct Entry: Sendable {
    let written: AppleSigningKey
    let key: RSAPublicKey
  }

  private var entries: [KeyID: [Entry]] = [:]

  /// A ring without keys.
  package init() {}

  /// How many keys there are.
  package var count: Int { entries.values.reduce(0) { $0 + $1.count } }

  /// Adds a key; does nothing where it is there already, where it cannot be an RSA key's, or where there are
  /// `maximumCount` of them. Two keys of one name are kept both: each may have signed something.
  package mutating func add(_ key: AppleSigningKey) {
    guard count < Self.maximumCount, entries[key.id]?.contains(where: { $0.written.isSame(as: key) }) != true,
      let publicKey = key.publicKey
    else { return }
    entries[key.id, default: []].append(Entry(written: key, key: publicKey))
  }

  /// What a notification proves about an event.
  package enum Finding: Sendable, Hashable {
    /// Apple signed it, and it contains the event.
    case proven(KeyID)
    /// It proves nothing: malformed, with a wrong signature, or without the event. The key is the one that it names,
    /// where that can be read.
    case unproven(KeyID?)
    /// It names a key that is not here.
    case unknownKey(KeyID)
  }

  /// Verifies the notification that stands beside an event, whenever it was signed: by these keys, and that the event is
  /// one of those it contains. `issuer` is who must have issued it.
  ///
  /// By which team an app is known is not in the notification: the event's own word is taken for that.
  package func judge(_ jws: [UInt8], provingThat event: AccountEvent, by issuer: String) -> Finding {
    guard jws.count <= UnverifiedNotification.maximumBodySize else { return .unproven(nil) }
    let notification: UnverifiedNotification
    do throws(Refusal) { notification = try UnverifiedNotification(jws: jws) } catch { return .unproven(nil) }
    let keyID = notification.jws.keyID
    guard let candidates = entries[keyID] else { return .unknownKey(keyID) }
    guard let entry = candidates.first(where: { notification.jws.isSigned(by: $0.key) }) else {
      return .unproven(keyID)
    }
    let verifier = NotificationVerifier(
      issuer: issuer, teams: [event.audience: event.team], clockTolerance: .zero)
    do throws(Refusal) {
      let verified = try verifier.believe(
        notification, by: entry.written, lastSeen: nil, at: .distantFuture, acceptingLate: true)
      return verified.events.contains(.known(event)) ? .proven(keyID) : .unproven(keyID)
    } catch {
      return .unproven(keyID)
    }
  }
}

extension Timestamp {
  /// A moment behind all that a notification may name: when it was signed is not judged again.
  fileprivate static var distantFuture: Timestamp {
    guard let end = Timestamp(milliseconds: 253_402_300_799_999) else {
      preconditionFailure("the end of the year 9999")
    }
    return end
  }
}
