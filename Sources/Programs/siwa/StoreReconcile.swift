import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka

/// `siwa store reconcile`: who was erased stays erased after a restore.
struct StoreReconcile: Command {
  static let name = "store reconcile"
  static let summary = "Erases from a restored account store who was erased since its backup was made."
  static let details = """
    apple.account-outcomes.v1 is kept for ever and says of each account, by the keyed hash of the store, what was erased,
    forgotten and ended. This command reads it from its beginning and brings the store to it: deleted is what was erased,
    the fences stand that keep late events from bringing anybody back, a state of mail that is not the last one is
    forgotten, and tokens are ended that a deletion has ended. What is younger than an outcome stays. Broken off, it is
    begun anew, and the same again changes nothing.

    Run it after a backup was put into the store's place and before the programs are started; docs/account-store.md has the
    other steps. Where no outcome is of this store, because the store or the topic is another one, nothing is changed, and
    that is said.

    Where the hashing key was rotated since the backup was made, run siwa store rotate-hash-key with that key's file first,
    with those of several in the order of that time: outcomes under a key that the store does not have, or not behind the
    same keys, are passed over, and counted.

    Exit codes: 0 done, 1 none of the outcomes is of this store, or some were passed over or cannot be read, 2 the command line, the
    configuration or the store has to change first, 3 the cluster or the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa store reconcile --dry-run", "How many accounts would be changed, and in what."),
    CommandExample("siwa store reconcile", "After a restore, before the programs are started."),
  ]

  /// How long the cluster may take for a page.
  private static let patience = Duration.seconds(30)

  private let isRehearsal: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    isRehearsal = arguments.flag("--dry-run", "Says what would change, and changes nothing.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await options.withKafka { configuration, log throws(KafkaError) in
      var failure: KafkaError?
      let exit = await StoreAccess.open(options) { store throws(AccountStoreError) in
        let reconciliation = StoreReconciliation(of: store, progress: StoreAccess.progress()) {
          try await TopicPages.open(.outcomes, configuration, within: Self.patience, log: log)
        }
        do {
          return tell(try await reconciliation.run(isRehearsal: isRehearsal))
        } catch let error as KafkaError {
          failure = error
          return .failure
        } catch let error as AccountStoreError {
          throw error
        } catch {
          throw AccountStoreError(.failed, "\(error)")
        }
      }
      if let failure { throw failure }
      return exit
    }
  }

  private func tell(_ report: StoreReconciliation.Report) -> ExitCode {
    if report.outcomes == 0 {
      Terminal.complain("siwa: \(Topic.outcomes.name) holds nothing: whatever was erased, it does not say")
      return .failure
    }
    guard report.isRecognized else {
      tellOfUnknownKeys(report.reconciliation)
      Terminal.complain(
        "siwa: none of the \(report.outcomes) outcomes on \(Topic.outcomes.name) is of this store: it is another one's "
          + "topic, or another store. Nothing was changed")
      return .failure
    }
    let changes = report.reconciliation
    Terminal.say(
      """
      Outcomes  \(report.outcomes)
      Erased    \(changes.erased.count)
      Fences    \(changes.fenced.count)
      Mail      \(changes.mail.count)
      Tokens    \(changes.tokens.count)
      \(isRehearsal ? "Nothing was changed" : "Done")
      """)
    tellOfUnknownKeys(changes)
    guard let first = report.firstUnreadable else { return changes.unknownKeys.isEmpty ? .success : .failure }
    Terminal.complain(
      "siwa: \(report.unreadable) outcomes cannot be read, the first at \(first.partition)/\(first.offset) of "
        + "\(Topic.outcomes.name): look at what they say, and whether the store knows it")
    return .failure
  }

  /// Says of which outcomes nobody can tell whom they speak of.
  private func tellOfUnknownKeys(_ reconciliation: Reconciliation) {
    for (key, count) in reconciliation.unknownKeys.sorted(by: { $0.key.description < $1.key.description }) {
      Terminal.complain(
        "siwa: \(count) outcomes were passed over: they name account_key \(key), and this store does not have that hashing "
          + "key, or not behind the same keys. Run `siwa store rotate-hash-key` with the file of each key that the store had "
          + "up to then, in their order, then this again. If this store has rotated to another key meanwhile, restore the "
          + "backup anew first: it cannot come to those hashes any more. Without the files the events themselves, as far "
          + "back as their topic keeps them, are what is left")
    }
  }
}
