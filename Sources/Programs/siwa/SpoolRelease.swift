import AccountEvents
import AccountServices
import Configuration
import EventLoop
import Kafka

/// `siwa spool release`: publishes records by hand.
struct SpoolRelease: Command {
  static let name = "spool release"
  static let summary = "Publishes records of a spool that no ingress has, each on its topic, and takes them out."
  static let details = """
    For a spool that no ingress serves any more: of a host that was given up, or one that was recovered from a damaged
    file. An ingress publishes its own spool by itself. Oldest first; each record is taken out once all in-sync replicas
    have it, so one that is published when this is killed is published twice. A record of a user who has an earlier one
    waiting is not released without it. What cannot be read stays, and so does what Kafka refuses for itself (too large,
    say), with the later records of its user; the others are published. Who did it stands in the file decisions.jsonl in
    the spool's directory.

    Exit codes: 0 published, 1 no such record waits, one cannot be read or is refused, its order would not hold, or the
    ingress has the spool, 2 the command line or the configuration makes no sense, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa spool release --all --directory /mnt/old-host/spool", "All that another host left behind.")
  ]

  /// How long Kafka may take for a record.
  private static let patience = Duration.seconds(30)

  private let access: SpoolAccess
  private let selection: RecordSelection
  private let person: String

  init(reading arguments: inout CommandArguments) {
    access = SpoolAccess(reading: &arguments)
    selection = RecordSelection(reading: &arguments, allowingAll: true)
    person = arguments.readPerson()
  }

  func run() async -> ExitCode {
    await access.withStopped { spool throws(SpoolError) in
      let all = try await spool.places()
      guard let chosen = selection.choose(from: all) else { return .failure }
      if let earlier = StoppedSpool.overtaken(by: Set(chosen), in: all) {
        Terminal.complain("siwa: record \(earlier) is of the same user and comes first: release or discard it too")
        return .failure
      }
      var damage: SpoolError?
      let exit = await access.options.withKafka { configuration, log throws(KafkaError) in
        let producer = try Producer(configuration, deadline: Self.patience, log: log)
        let result: Result<ExitCode, KafkaError>
        do throws(KafkaError) {
          let wanted = Set(chosen)
          let places = all.filter { wanted.contains($0.sequence) }
          result = .success(try await release(places, of: spool, with: producer, &damage))
        } catch {
          result = .failure(error)
        }
        _ = await producer.close(within: Self.patience)
        return try result.get()
      }
      if let damage { throw damage }
      return exit
    }
  }

  @Loop
  private func release(
    _ chosen: [StoppedSpool.Place], of spool: StoppedSpool, with producer: Producer, _ damage: inout SpoolError?
  ) async throws(KafkaError) -> ExitCode {
    var exit = ExitCode.success
    var refused: [LaneID: Int64] = [:]
    for place in chosen {
      let sequence = place.sequence
      if let earlier = refused[place.account] {
        Terminal.complain("siwa: record \(sequence) stays: record \(earlier) is of the same user and comes first")
        continue
      }
      let record: SpooledRecord?
      do throws(SpoolError) { record = try await spool.record(sequence) } catch {
        damage = error
        return .failure
      }
      guard let record else {
        Terminal.complain("siwa: record \(sequence) is damaged and cannot be read: it stays")
        exit = .failure
        continue
      }
      do throws(KafkaError) {
        try await spool.publish(record, with: producer)
      } catch {
        // What is wrong with this one alone keeps no other user's records here.
        guard error.consequence == .permanent else { throw error }
        Terminal.complain("siwa: record \(sequence) stays: Kafka refuses it: \(error)")
        refused[place.account] = sequence
        exit = .failure
        continue
      }
      do throws(SpoolError) {
        try await spool.settle(sequence, record, .released, by: person, at: .now)
      } catch {
        damage = error
        return .failure
      }
      Terminal.say("released  \(sequence)")
    }
    return exit
  }
}
