package import AccountStore
package import Configuration
package import EventLoop
import Kafka

/// How a consumer takes part in its group, and how much it does at once.
package struct ConsumerSettings: Sendable, Equatable {
  /// How long the log goes on with a record that a consumer says.
  static let logDeadline = Duration.seconds(30)

  /// The group under which Kafka keeps how far the consumer is.
  package var group: String
  /// The name under which this process comes back to its partitions; nil where it has none.
  package var instance: String?
  /// Where health and metrics are asked for.
  package var admin: SocketAddress
  /// How much it does at once, and when it tries again.
  package var bounds: ProcessingBounds
  /// How long finishing what was begun may take once it is told to end.
  package var drainDeadline: Duration

  /// How it takes part in its group.
  var membership: GroupMembership {
    GroupMembership(ConsumerGroup(group), instance: instance, handover: ProcessingBounds.HandoverLimits().whole)
  }

  /// Everything said, nothing assumed.
  package init(
    group: String, instance: String?, admin: SocketAddress, bounds: ProcessingBounds, drainDeadline: Duration
  ) {
    (self.group, self.instance, self.admin) = (group, instance, admin)
    (self.bounds, self.drainDeadline) = (bounds, drainDeadline)
  }

  /// Reads the settings that bear the consumer's name.
  package init(reading settings: inout Settings, of consumer: ConsumerName, administrationPort: UInt16) {
    group = settings.read(
      "\(consumer).group", .text(1...255), default: "siwa-\(consumer)",
      "The group under which Kafka keeps how far it is. Another one begins at the start of the topic, and finds in the store what is done."
    )
    instance = settings.readIfPresent(
      "\(consumer).instance", .text(1...255),
      "A name of its own for each process (group.instance.id): who comes back soon finds its partitions, and no others move."
    )
    admin = settings.read(
      "\(consumer).admin", .socketAddress, default: .loopback(port: administrationPort),
      "Where its /livez, /readyz and /metrics are, without TLS.")
    let inFlight = settings.read(
      "\(consumer).in-flight", .integer(16...1_000_000, unit: "events"), default: 4096,
      "How many events it holds at once; those count that wait for an earlier one of their account. A quarter may belong to one partition."
    )
    let waiting = settings.read(
      "\(consumer).waiting", .integer(16...1_000_000, unit: "events"), default: 16_384,
      "How many events more may wait for their next attempt, or behind one of their account that does: each takes the memory of its record, some 4 KB. A quarter may belong to one partition; beyond that nothing more is read of it."
    )
    let concurrency = settings.read(
      "\(consumer).concurrency", .integer(1...10_000, unit: "events"), default: 64,
      "How many events it processes at once where that waits for something outside.")
    let first = settings.read(
      "\(consumer).retries.first", .duration(.milliseconds(10) ... .seconds(3600)), default: .seconds(1),
      "The longest pause after the first attempt at an event that failed; it doubles with each further one.")
    let longest = settings.read(
      "\(consumer).retries.longest", .duration(.milliseconds(10) ... .seconds(86_400)), default: .seconds(300),
      "Where that doubling ends.")
    let alarmAfter = settings.read(
      "\(consumer).retries.alarm-after", .integer(1...1000, unit: "attempts"), default: 10,
      "After how many attempts an event is logged as an error. It is tried on.")
    let giveUpAfter = settings.read(
      "\(consumer).retries.give-up-after", .duration(.seconds(3600) ... .seconds(13 * 86_400)),
      default: .seconds(7 * 86_400),
      "How old an event gets before it goes to the dead letters where it fails or waits still: less than its topic keeps it, 14 days by default."
    )
    drainDeadline = settings.read(
      "\(consumer).drain", .duration(.zero ... .seconds(300)), default: .seconds(25),
      "How long finishing what was begun may take after SIGTERM.")
    // What Apple signed may be as far ahead of our clocks, and a time of ours follows it.
    let clockTolerance = settings.readClockTolerance() * 2 + .seconds(1)
    if longest < first {
      settings.refuse("\(consumer).retries.longest", "expected no less than \(consumer).retries.first")
    }
    if giveUpAfter <= longest {
      settings.refuse("\(consumer).retries.give-up-after", "expected more than \(consumer).retries.longest")
    }
    if !admin.isLoopback {
      settings.warn("\(consumer).admin", "not a loopback address: whoever reaches it reads the metrics")
    }
    bounds = ProcessingBounds(
      inFlight: inFlight, inFlightPerPartition: inFlight / 4, waiting: waiting, waitingPerPartition: waiting / 4,
      concurrency: concurrency,
      retries: RetryPace(first: first, longest: longest), alarmAfter: alarmAfter,
      giveUpAfter: giveUpAfter, clockTolerance: clockTolerance)
  }
}
