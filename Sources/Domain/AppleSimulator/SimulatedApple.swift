package import AccountEvents
package import Cryptography
package import EventLoop
package import HTTPClient

/// A fake of Apple's side, for tests, for rehearsals, and for trying things out.
///
/// It is not Apple, and shares no code with what believes Apple, so that no mistake is mirrored. It is faithful in what
/// was seen on Apple's wire: the key set with several keys, in no stable order, that vanish when they are replaced;
/// notifications that are byte for byte what Apple signs, really signed with RS256; deliveries by POST that go on until
/// the answer is 200. What Apple does not publish, the number and the pauses of its attempts, is the caller's choice.
/// Beyond that it does on request what Apple does seldom, or never: a `Fault`, a `KeysAnswer`, a `DeliveryPlan`.
///
/// `SimulatedAppleServer` puts it on loopback.
@Loop
package final class SimulatedApple {
  /// What the keys endpoint answers.
  package var keysAnswer = KeysAnswer.keys
  /// How long the keys endpoint takes.
  package var keysDelay = Duration.zero
  /// How often the keys endpoint was asked.
  package internal(set) var keysAsked = 0

  /// The keys of the day.
  package private(set) var ring: KeyRing
  private let issuer: String
  private let clock: @Sendable () -> Timestamp
  private let client: HTTPClient
  private var lastEvent: Timestamp?

  /// `issuer` is `AppleNotification.appleIssuer` unless the receiver was told otherwise. `trustAnchors` say whose
  /// certificates the receiver may have.
  package init(
    ring: KeyRing, issuer: String, trustAnchors: HTTPClientConfiguration.TrustAnchors,
    clock: @escaping @Sendable () -> Timestamp
  ) {
    self.ring = ring
    (self.issuer, self.clock) = (issuer, clock)
    client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-simulator", trustAnchors: trustAnchors, proxy: .none, connectTimeout: .seconds(5),
        maximumConnections: 8, maximumRequests: 64))
  }

  /// Puts a new key in the place of the oldest, which is gone at once. Returns the new key's `kid`.
  @discardableResult
  package func rotateKeys() throws(CryptographyError) -> String { try ring.rotate() }

  /// A signed notification of something that happened 12 seconds ago, and after everything signed before.
  package func sign(
    _ type: NotificationType, of person: Person, for audience: String, faults: [Fault] = []
  ) throws(CryptographyError) -> SignedNotification {
    let now = clock()
    var occurredAt = now - .seconds(12)
    if let lastEvent, occurredAt <= lastEvent { occurredAt = lastEvent + .milliseconds(1) }
    lastEvent = occurredAt
    return try sign(
      AppleNotification(
        type: type, person: person, audience: audience, jti: Base64URL.encode(try SecureRandom.bytes(16)),
        occurredAt: occurredAt, issuedAt: now, issuer: issuer, faults: faults))
  }

  /// The notification, signed with the next key.
  package func sign(_ notification: AppleNotification) throws(CryptographyError) -> SignedNotification {
    try SignedNotification(notification, by: ring.next(), forger: ring.forger)
  }

  /// Delivers all of them, one after another, and returns when each was received or given up.
  ///
  /// Where the task is cancelled, it returns early with what was tried.
  package func deliver(_ notifications: [SignedNotification], _ plan: DeliveryPlan) async -> [Delivery] {
    await Deliverer(client: client).deliver(notifications, plan)
  }
}
