package import AccountEvents
package import AppleID
package import EventLoop
package import Kafka
package import Telemetry

/// The keys of Apple's on `Topic.signingKeys`, read when the log begins and again when one is missing.
///
/// The ingress publishes a key beside the first event that it verified: the event can be read before its key. So a missing
/// one is waited for, within limits: neither an unknown key nor a flood of them keeps the log waiting for long.
@Loop
package final class SigningKeyBook {
  /// How long the topic is left alone after it was read.
  package static let pause = Duration.seconds(1)
  /// How long a key is waited for.
  package static let patience = Duration.seconds(10)
  /// For so long after a key was waited for in vain none is waited for.
  package static let impatience = Duration.seconds(60)

  /// The keys so far.
  package private(set) var ring = SigningKeyRing()

  private let readAll: @Loop () async throws(KafkaError) -> [AppleSigningKey]
  private let clock: any AlarmClock
  private let logger: Logger
  private var lastRead: MonotonicTime?
  private var waitingSince: MonotonicTime?
  private var impatientUntil: MonotonicTime?

  /// A book of the keys that `readAll` finds. Where it throws, the keys stay as they are.
  package init(
    clock: any AlarmClock, logger: Logger,
    reading readAll: @escaping @Loop () async throws(KafkaError) -> [AppleSigningKey]
  ) { (self.clock, self.logger, self.readAll) = (clock, logger, readAll) }

  /// Reads the keys.
  package func read() async throws(KafkaError) {
    lastRead = clock.now
    for key in try await readAll() { ring.add(key) }
  }

  /// Called where the keys do not verify something: because the key that it names is unknown, or because the signature is
  /// not the known one's. Returns once it may be looked at again; false where nothing more is to be waited for.
  package func renew(isKeyUnknown: Bool) async -> Bool {
    if lastRead.map({ clock.now - $0 >= Self.pause }) ?? true {
      await readAgain()
      return true
    }
    // It was read a moment ago, in vain.
    guard isKeyUnknown, impatientUntil.map({ $0 <= clock.now }) ?? true else { return false }
    let since = waitingSince ?? clock.now
    waitingSince = since
    guard clock.now - since < Self.patience else {
      (waitingSince, impatientUntil) = (nil, clock.now + Self.impatience)
      logger.error("a key that Apple's signature names did not come: the audit log says that it is unknown")
      return false
    }
    await pass(until: (lastRead ?? clock.now) + Self.pause)
    await readAgain()
    return true
  }

  /// What had to be verified is.
  package func succeeded() { waitingSince = nil }

  private func readAgain() async {
    do throws(KafkaError) { try await read() } catch {
      logger.warning("Apple's keys could not be read again", error.metadata)
    }
  }

  private func pass(until time: MonotonicTime) async {
    await withCheckedContinuation { continuation in clock.set(time) { continuation.resume() } }
  }
}
