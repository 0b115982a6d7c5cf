import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka

/// `siwa store prune`: what nobody asks for any more.
struct StorePrune: Command {
  static let name = "store prune"
  static let summary = "Forgets what the account store noted of events that cannot come again."
  static let details = """
    The store notes each event that a consumer has settled, so that it is processed once, and that note is needed for as
    long as a record of the event can be read. This command asks the cluster how long the topics of account events and of
    retried dead letters keep theirs (retention.ms and, as Kafka deletes whole segments, segment.ms), refuses to forget
    anything younger, and deletes what is older: notes of settled events, steps of erasures that are at their end, counts
    of attempts. Programs may run meanwhile; broken off, it goes on where it was.

    What is never forgotten: who is erased, the fences, which make an old event void wherever it comes from, erasures that
    are not at their end or have retained something, accounts, tokens, the state of mail. What waits as a dead letter is not
    settled, and is processed whenever it is retried.

    The file of an SQLite store becomes no smaller, but takes what comes without growing; PostgreSQL's autovacuum sees to
    the same.

    Exit codes: 0 done, 1 it failed, 2 the command line or the configuration has to change first, 3 the cluster or the
    store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa store prune --older-than 60d --dry-run", "How many rows would be deleted."),
    CommandExample("siwa store prune --older-than 60d", "Once a month."),
  ]

  /// How long the cluster may take for an answer.
  private static let patience = Duration.seconds(30)

  private let age: Duration
  private let isRehearsal: Bool
  private let consumers: [ConsumerName]
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    age = arguments.read(
      "--older-than", "AGE", .duration(.seconds(3600) ... .seconds(36_500 * 86_400)),
      "How long ago it must have been settled, such as 60d.")
    isRehearsal = arguments.flag("--dry-run", "Counts, and deletes nothing.")
    consumers =
      TopicPlan.consumers
      + arguments.readAll(
        "--consumer", "NAME", .consumerName, "A consumer of your own, whose retried records count too; may be repeated."
      )
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    let exit = await options.withKafka { configuration, log throws(KafkaError) in
      let admin = try Admin(configuration, log: log)
      let result: Result<ExitCode, KafkaError>
      do throws(KafkaError) { result = .success(try await judge(with: admin)) } catch { result = .failure(error) }
      await admin.close()
      return try result.get()
    }
    guard exit == .success else { return exit }
    return await StoreAccess.run(options) { store throws(AccountStoreError) in
      let time = Timestamp.now - age
      let pruning = try await store.prune(
        before: time, eraser: .dataEraser, isRehearsal: isRehearsal, progress: StoreAccess.progress())
      Terminal.say(
        """
        Store          \(store.place)
        Before         \(time)
        Settled        \(pruning.settled)
        Steps          \(pruning.steps)
        Attempts       \(pruning.attempts)
        Deletions      \(pruning.deletions)
        \(isRehearsal ? "Nothing was deleted" : "Deleted")
        """)
      return .success
    }
  }

  /// Says where a record of what would be forgotten can still be read.
  private func judge(with admin: Admin) async throws(KafkaError) -> ExitCode {
    for topic in [Topic.accountEvents] + consumers.map({ .retries(of: $0) }) {
      guard let state = try await admin.state(of: topic.name, within: Self.patience) else {
        // Nobody retries anything where there is none.
        guard topic == .accountEvents else { continue }
        Terminal.complain("siwa: there is no \(topic.name): this is not the cluster that the store belongs to")
        return .misuse
      }
      guard let lifetime = RecordLifetime(state) else {
        Terminal.complain(
          "siwa: \(topic.name) keeps its records without an end (cleanup.policy, retention.ms): what they led to is "
            + "needed for as long")
        return .misuse
      }
      guard age >= lifetime.end else {
        Terminal.complain(
          "siwa: --older-than: \(topic.name) keeps records for \(words(lifetime.retention)), in segments of "
            + "\(words(lifetime.segment)): expected \(words(lifetime.end)) or more")
        return .misuse
      }
    }
    return .success
  }

  /// In whole hours or days, rounded up: for people.
  private func words(_ duration: Duration) -> String {
    let hours = (duration.components.seconds + 3599) / 3600
    return hours.isMultiple(of: 24) ? "\(hours / 24)d" : "\(hours)h"
  }
}
