import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka

/// Which records an operator means that are to be replayed.
struct ReplaySelection {
  let topic: ReplayedTopic?
  let file: String?
  let section: TopicSection
  let most: Int64
  private let account: AccountOption
  private let hash: AccountHash?
  private let event: EventID?
  private let type: String?

  init(reading arguments: inout CommandArguments) {
    topic = arguments.readIfPresent(
      "WHAT", .choice(ReplayedTopic.self),
      "What is replayed: account events, what was done about them, or the states of mail. Not with --in.")
    file = arguments.readIfPresent("--in", "FILE", .path, "Replays a file that --out has written, instead of a topic.")
    let from = arguments.readAll(
      "--from", "PLACE", .recordPlace,
      "Begins at the first record that was appended at a time (2026-05-03T10:00:00Z, or a day in UTC) or later; or at a "
        + "record (PARTITION/OFFSET), in that partition alone, and may be repeated then.")
    let until = arguments.readAll("--until", "PLACE", .recordPlace, "Ends in front of what stands there.")
    account = AccountOption(reading: &arguments, "The records of an account.")
    hash = arguments.readIfPresent(
      "--account-hash", "HASH", .accountHash, "The outcomes of the account that this keyed hash stands for.")
    event = arguments.readIfPresent("--event", "ID", .eventID, "The event of that id, or what followed from it.")
    type = arguments.readIfPresent(
      "--type", "TYPE", .text(1...64), "The records of that type, such as account-delete or tokens-revoked.")
    most =
      arguments.readIfPresent("--limit", "NUMBER", .integer(1...Int.max), "As many records at most.").map(Int64.init)
      ?? .max
    if (topic == nil) == (file == nil) { arguments.refuse("say WHAT is replayed, or --in FILE") }
    if hash != nil, account.isGiven { arguments.refuse("say one of --account and --account-hash") }
    if hash != nil, let topic, topic != .outcomes { arguments.refuse("--account-hash goes with outcomes") }
    section = TopicSection(
      from: Self.bound(from, "--from", &arguments), until: Self.bound(until, "--until", &arguments))
  }

  private static func bound(
    _ places: [RecordPlace], _ name: String, _ arguments: inout CommandArguments
  ) -> TopicSection.Bound {
    var offsets: [Int32: Int64] = [:]
    for place in places {
      switch place {
      case .time(let time):
        if places.count > 1 { arguments.refuse("\(name): one time, or records of different partitions") }
        return .time(time)
      case .record(let partition, let offset):
        if offsets.updateValue(offset, forKey: partition) != nil {
          arguments.refuse("\(name): the partition \(partition) stands there twice")
        }
      }
    }
    return offsets.isEmpty ? .edge : .offsets(offsets)
  }

  /// What is let through; nil where the standard input names nobody, which was said then. An account is looked for among
  /// the outcomes by the hashes that the store of the configuration has for it.
  @Loop
  func filter(
    on topic: ReplayedTopic, _ options: ConfigurationOptions
  ) async throws -> ReplayFilter? {
    var keys: Set<[UInt8]>?
    if let hash { keys = [Array(hash.description.utf8)] }
    if account.isGiven {
      guard let account = account.read() else { return nil }
      keys = topic == .outcomes ? try await hashes(of: account, options) : [account.key]
    }
    return ReplayFilter(keys: keys, event: event, type: type)
  }

  @Loop
  private func hashes(of account: Account, _ options: ConfigurationOptions) async throws -> Set<[UInt8]> {
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    let store = try await ConfigurationSchema.siwa.load(StoreSettings.self, from: sources).value.open()
    let hashes = store.hashes(of: account)
    await store.close()
    return Set(hashes.map { Array($0.description.utf8) })
  }
}

/// A place on a topic, as the command line names it.
enum RecordPlace: Sendable {
  /// In each partition the first record that was appended then or later.
  case time(Timestamp)
  /// A record.
  case record(partition: Int32, offset: Int64)
}

extension SettingType where Value == RecordPlace {
  static var recordPlace: SettingType {
    SettingType(
      "place", expected: "a time such as 2026-05-03T10:00:00Z, a day, or a partition and an offset such as 0/17",
      standIn: .record(partition: 0, offset: 0), show: \.text
    ) { RecordPlace($0) }
  }
}

extension RecordPlace {
  init?(_ text: String) {
    if let place = LetterPlace(text) {
      self = .record(partition: place.partition, offset: place.offset)
    } else if let time = Timestamp(rfc3339: text) {
      self = .time(time)
    } else {
      return nil
    }
  }

  var text: String {
    switch self {
    case .time(let time): time.description
    case .record(let partition, let offset): "\(partition)/\(offset)"
    }
  }
}

extension SettingType where Value == AccountHash {
  fileprivate static var accountHash: SettingType {
    SettingType(
      "account's hash", expected: "64 hexadecimal digits", standIn: .nobody, show: \.description,
      parse: { AccountHash($0) })
  }
}

extension AccountHash {
  fileprivate static var nobody: AccountHash {
    guard let hash = AccountHash(Array(repeating: 0, count: 32)) else { preconditionFailure("there are 32 bytes") }
    return hash
  }
}
