import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Glibc
import Kafka

/// `siwa replay`: records again.
struct ReplayCommand: Command {
  static let name = "replay"
  static let summary = "Replays account events, outcomes or states of mail: to see, to keep, or to give somebody again."
  static let details = """
    Without a destination the records are shown, a line each: where it stands, when it was appended, its type, the event,
    and whose app or consumer it is; of outcomes the account's keyed hash. Personal data is shown with --personal alone.
    What could command a terminal is shown as text.

    --out writes all of each record into a file that only you can read; --in reads such a file. docs/replay.md describes
    it. --to-topic appends the records, as they are, to a topic of yours: never to the one that they are from, nor to one of
    the programs'. --to-consumer gives events to a consumer on its retry topic, and to nobody else. What the consumer has
    applied stays as it is, as its ledger says; there is no switch that changes that.

    It reads without a group, so no consumer notices. The records of one key keep their order. With --resume it notes in a
    file how far it is, and the same command goes on there, whatever ended the one before: some records may come twice
    then, and none is left out. With another selection, another file, or a topic that was made anew, it refuses to: only
    --limit may be another one. SIGINT or SIGTERM ends it once the destination has what it was given; it says what is left.

    Exit codes: 0 done, 1 no record is as described, a part of them is gone, or the destination does not take one, 2 the
    command line or the configuration has to change first, 3 it was interrupted, or the cluster cannot be asked.

    """
  static let examples = [
    CommandExample(
      "siwa replay events --from 2026-05-03T10:00:00Z --type account-delete", "Which deletions there were."),
    CommandExample("siwa replay outcomes --event S25cB0PbHs6y97gYYmgydQ", "What followed from an event."),
    CommandExample("siwa replay events --account - --out ada.jsonl", "All of one account, into a file."),
    CommandExample(
      "siwa replay events --from 2026-05-01 --to-consumer data-eraser --dry-run", "How many, and which, it would be."),
    CommandExample(
      "siwa replay --in may.jsonl --to-topic shop.account-events --resume may.progress",
      "A file, onto a topic of yours."),
  ]

  /// How long the cluster may take for an answer, or be silent while it is read.
  private static let patience = Duration.seconds(30)
  /// How often the journal is written.
  private static let journalPause = Duration.seconds(1)

  /// Where the records go.
  private enum Destination {
    case terminal
    case file(String)
    case topic(String)
    case consumer(ConsumerName)
  }

  private let selection: ReplaySelection
  private let destination: Destination
  private let journal: String?
  private let isRehearsal: Bool
  private let printing: RecordPrinting
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    selection = ReplaySelection(reading: &arguments)
    let file = arguments.readIfPresent(
      "--out", "FILE", .path, "Writes the records into a new file, with personal data; only you can read it.")
    let topic = arguments.readIfPresent(
      "--to-topic", "TOPIC", .text(1...249), "Appends the records to a topic of yours.")
    let consumer = arguments.readIfPresent(
      "--to-consumer", "NAME", .consumerName, "Gives the events to a consumer again, such as token-revoker.")
    journal = arguments.readIfPresent(
      "--resume", "FILE", .path, "Notes there how far it is, and goes on where such a note is. Not with --out.")
    isRehearsal = arguments.flag("--dry-run", "Shows what would be replayed, and how many; replays nothing.")
    printing = RecordPrinting(reading: &arguments)
    options = ConfigurationOptions(reading: &arguments)
    if [file, topic, consumer?.text].count(where: { $0 != nil }) > 1 {
      arguments.refuse("say one of --out, --to-topic and --to-consumer")
    }
    destination =
      file.map { .file($0) } ?? topic.map { .topic($0) } ?? consumer.map { .consumer($0) } ?? .terminal
    switch destination {
    case .terminal, .file: if journal != nil { arguments.refuse("--resume goes with --to-topic and --to-consumer") }
    case .topic: break
    case .consumer:
      if let what = selection.topic, what != .events { arguments.refuse("--to-consumer goes with events") }
    }
  }

  func run() async -> ExitCode {
    do { return try await replay() } catch let refusal as ReplayRefusal {
      Terminal.complain("siwa: \(refusal)")
      return .misuse
    } catch {
      return ExitCode(complainingOf: error)
    }
  }

  @Loop
  private func replay() async throws -> ExitCode {
    let (source, topic) = try openSource()
    if let refusal = try await refusal(of: destination, for: topic) { throw refusal }
    guard let filter = try await selection.filter(on: topic, options) else { return .misuse }
    let words = words(for: topic, filter, of: source)
    let former = try journal.flatMap { path throws(ReplayJournal.Fault) in try ReplayJournal(of: words, at: path) }
    if let former, former.left.isEmpty {
      Terminal.complain("all of it was replayed: without \(journal ?? "") it begins anew")
      return .success
    }
    let section = former.map { TopicSection(of: $0.left) } ?? selection.section
    let held = try await source.held()
    if let former, let journal { try former.expect(in: held, at: journal) }
    let offsets = try await section.offsets(of: held) { try await source.offsets(since: $0) }
    if let unknown = offsets.unknown.min() {
      throw ReplayRefusal("there is no partition \(unknown) of \(topic.topic)")
    }
    for (partition, gone) in offsets.gone.sorted(by: { $0.key < $1.key }) {
      Terminal.complain(
        "siwa: \(partition)/\(gone.lowerBound) to \(partition)/\(gone.upperBound - 1) are not there any more")
    }
    let run = ReplayRun(
      Replay(of: offsets.ranges, from: source, topic, filter, atMost: selection.most),
      journal: isRehearsal ? nil : journal.map { ($0, ReplayJournal(of: words, left: offsets.ranges)) })
    let exit = try await go(run, topic)
    guard exit == .success else { return exit }
    if run.replay.progress.replayed == 0, former == nil {
      // Otherwise the same command, once there are some, would say that all of it was replayed.
      if let journal, !isRehearsal { unsafe unlink(journal) }
      Terminal.complain("siwa: no record is as described")
      return .failure
    }
    return offsets.gone.isEmpty ? .success : .failure
  }

  @Loop
  private func go(_ run: ReplayRun, _ topic: ReplayedTopic) async throws -> ExitCode {
    let terminal = TerminalDestination { printing.text(of: $0, on: topic) }
    if isRehearsal { return try await run.go(to: terminal, "would be replayed") }
    switch destination {
    case .terminal: return try await run.go(to: terminal, "shown")
    case .file(let path):
      let writer = try RecordFileWriter(path, of: topic.topic, at: .now)
      let exit = try await run.go(to: FileDestination(writer), "written")
      if exit == .success { try writer.finish() } else { Terminal.complain("siwa: \(path) was not made") }
      return exit
    case .topic(let name):
      return try await go(run) { KafkaRecord($0, on: name) }
    case .consumer(let consumer):
      return try await go(run) { KafkaRecord(giving: $0, to: consumer, first: RecordOrigin($0)) }
    }
  }

  @Loop
  private func go(_ run: ReplayRun, make: @escaping (ConsumedRecord) -> KafkaRecord) async throws -> ExitCode {
    let producer = try Producer(
      options.kafka(), deadline: Self.patience, log: ConfigurationOptions.kafkaLog)
    let result: Result<ExitCode, any Error>
    do { result = .success(try await run.go(to: TopicDestination(producer, make: make), "replayed")) } catch {
      result = .failure(error)
    }
    await producer.close(within: Self.patience)
    return try result.get()
  }

  @Loop
  private func openSource() throws -> (any ReplaySource, ReplayedTopic) {
    if let topic = selection.topic {
      let source = TopicSource(
        topic.topic, try options.kafka(), within: Self.patience, log: ConfigurationOptions.kafkaLog)
      return (source, topic)
    }
    let source = try FileSource(selection.file ?? "")
    guard let topic = ReplayedTopic(named: source.topic) else {
      throw ReplayRefusal(
        "the records of \(selection.file ?? "") are of another topic: \(String(printable: source.topic))")
    }
    return (source, topic)
  }

  /// Why nothing is replayed to there; nil where nothing speaks against it.
  @Loop
  private func refusal(of destination: Destination, for topic: ReplayedTopic) async throws -> ReplayRefusal? {
    let target: String
    switch destination {
    case .terminal, .file: return nil
    case .topic(let name):
      if let words = ReplayTarget.refusal(of: name, for: topic.topic) { return ReplayRefusal("--to-topic: \(words)") }
      target = name
    case .consumer(let consumer):
      if topic != .events { return ReplayRefusal("--to-consumer: consumers read account events, and nothing else") }
      target = Topic.retries(of: consumer).name
    }
    let configuration = try options.kafka()
    return try await Admin.run(configuration, log: ConfigurationOptions.kafkaLog) { admin throws(KafkaError) in
      do throws(KafkaError) { _ = try await admin.describe(topic: target, within: Self.patience) } catch {
        if error.code == .unknownTopic { return ReplayRefusal("there is no topic \(target)") }
        throw error
      }
      return nil
    }
  }

  /// What tells this replay from others. How many records at most may change from one time to the next.
  private func words(for topic: ReplayedTopic, _ filter: ReplayFilter, of source: any ReplaySource) -> [String] {
    let target =
      switch destination {
      case .terminal: "terminal"
      case .file(let path): "file \(path)"
      case .topic(let name): "topic \(name)"
      case .consumer(let consumer): "consumer \(consumer)"
      }
    // Another file may have come to the name.
    let beginning = (source as? FileSource).map { String(decoding: $0.beginning, as: UTF8.self) }
    let keys = (filter.keys ?? []).map { String(decoding: $0, as: UTF8.self) }.sorted()
    return [
      topic.rawValue, selection.file ?? "", beginning ?? "", selection.section.from.words,
      selection.section.until.words, target, filter.event?.text ?? "", filter.type ?? "", "\(filter.keys == nil)",
    ] + keys
  }
}

/// Why a replay cannot be what was asked for.
struct ReplayRefusal: Error, CustomStringConvertible {
  let description: String

  init(_ words: String) { description = words }
}
