package import AccountEvents
package import Cryptography
package import EventLoop
package import HTTPClient

/// A fake of Apple's side, for tests, for rehearsals, and for trying things out.
///
/// It is not Apple, and shares no code with what believes Apple, so that no mistake is mirrored. It is faithful in what
/// was seen on Apple's wire: the key set with several keys, in no stable order, that vanish when they are replaced;
/// notifications that are byte for byte what Apple signs, really signed with RS256; deliveries by POST that go on until
/// the answer is 200; tokens for a sign-in's code, to a developer who proves with a client secret who they are; and a
/// revocation, which ends a person's whole authorization for the app and comes back as `consent-revoked`; and pages on
/// which a person in a browser signs in, stops using an app and deletes their Apple Account; and for an app that changes
/// teams, other subjects and relay addresses, and transfer identifiers that stand for them. What Apple does not publish,
/// the number and the pauses of its attempts, is the caller's choice. Beyond that it does on request
/// what Apple does seldom, or never: a `Fault`, a `KeysAnswer`, a `TokensAnswer`, a `DeliveryPlan`.
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

  /// What the token endpoint answers.
  package var tokensAnswer = TokensAnswer.tokens
  /// How long the token endpoint takes to answer, after it has done what was asked for.
  package var tokensDelay = Duration.zero
  /// How often the token endpoint was asked.
  package internal(set) var tokensAsked = 0
  /// What the revocation endpoint answers.
  package var revocationsAnswer = TokensAnswer.tokens
  /// How long the revocation endpoint takes to answer, after it has done what was asked for.
  package var revocationsDelay = Duration.zero
  /// How often the revocation endpoint was asked.
  package internal(set) var revocationsAsked = 0

  /// What the migration endpoint answers.
  package var migrationAnswer = TokensAnswer.tokens
  /// How long the migration endpoint takes to answer.
  package var migrationDelay = Duration.zero
  /// One in so many questions at the migration endpoint is throttled, whatever else it answers; nil: none.
  package var migrationThrottle: Int?
  /// Subjects of whom the migration endpoint says an error that nobody knows.
  package var migrationOddities: Set<String> = []
  /// How long whoever is throttled is asked to wait.
  package var retryAfter = Duration.seconds(30)
  /// How often the migration endpoint was asked.
  package internal(set) var migrationsAsked = 0

  /// How what follows from a revocation, or from what a person does on the pages, is told; nil where no developer wants to
  /// know.
  package var notifications: DeliveryPlan?
  /// What became of that.
  package private(set) var told: [Delivery] = []
  private var telling: [Int: Task<Void, Never>] = [:]
  private var tellings = 0

  /// The keys of the day.
  package private(set) var ring: KeyRing
  var developers = Developers()
  var authorizations = Authorizations()
  var transfers = Transfers()
  let issuer: String
  let clock: @Sendable () -> Timestamp
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
  ///
  /// It does happen: with the consent or the account the person's tokens are gone. What a fault makes of it does not.
  package func sign(
    _ type: NotificationType, of person: Person, for audience: String, faults: [Fault] = []
  ) throws(CryptographyError) -> SignedNotification {
    if faults.isEmpty {
      switch type {
      case .consentRevoked: authorizations.end(person, audience)
      case .accountDelete, .accountDeleted: authorizations.end(person, nil)
      case .emailEnabled, .emailDisabled: break
      }
    }
    return try sign(type, of: person, for: audience, happened: .seconds(12), faults)
  }

  private func sign(
    _ type: NotificationType, of person: Person, for audience: String, happened ago: Duration, _ faults: [Fault]
  ) throws(CryptographyError) -> SignedNotification {
    let now = clock()
    var occurredAt = now - ago
    if let lastEvent, occurredAt <= lastEvent { occurredAt = lastEvent + .milliseconds(1) }
    lastEvent = occurredAt
    return try sign(
      AppleNotification(
        type: type, person: known(person, to: audience), audience: audience,
        jti: Base64URL.encode(try SecureRandom.bytes(16)),
        occurredAt: occurredAt, issuedAt: now, issuer: issuer, faults: faults))
  }

  /// The notification, signed with the next key.
  package func sign(_ notification: AppleNotification) throws(CryptographyError) -> SignedNotification {
    try SignedNotification(notification, by: nextKey(), forger: ring.forger)
  }

  /// The key for the next signature.
  func nextKey() -> SigningKey { ring.next() }

  /// Delivers all of them, one after another, and returns when each was received or given up.
  ///
  /// Where the task is cancelled, it returns early with what was tried.
  package func deliver(_ notifications: [SignedNotification], _ plan: DeliveryPlan) async -> [Delivery] {
    await Deliverer(client: client).deliver(notifications, plan)
  }

  /// Tells of something that has just happened to a person: beside the answer to what caused it, and before or after that.
  func tell(_ type: NotificationType, of person: Person, _ client: String) throws(CryptographyError) {
    guard let notifications else { return }
    let notification = try sign(type, of: person, for: client, happened: .zero, [])
    let number = tellings
    tellings += 1
    // A task of its own, as Apple tells it in its own time: the request that caused it is over by then.
    telling[number] = Task(executorPreference: Loop.executor) { [weak self, client = self.client] in
      let deliveries = await Deliverer(client: client).deliver([notification], notifications)
      await self?.tell(deliveries, number)
    }
  }

  /// Returns when what followed from revocations and pages so far was told, or given up.
  package func untilTold() async {
    for task in telling.values { await task.value }
  }

  private func tell(_ deliveries: [Delivery], _ number: Int) {
    told += deliveries
    telling[number] = nil
  }

  /// Ends what is being told, and waits for it.
  func endTelling() async {
    let tasks = telling.values
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
