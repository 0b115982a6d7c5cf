import AccountEvents
import AccountServices
import Configuration
import EventLoop
import Glibc
import JSON
import Kafka

/// `siwa topics reset-group`: has a group go on elsewhere.
struct TopicsResetGroup: Command {
  static let name = "topics reset-group"
  static let summary = "Has a group without members go on at another place of a topic."
  static let details = """
    A line for each partition that changes: its number, where the group is, where it is to go on, and how many offsets that
    is forwards (+) or back (-). The notes that consumers keep beside their offsets go, also where the group stays: which
    account store they worked with, and which records. On a terminal it asks before it changes anything. A group that has
    members is refused: end the programs first, and start them again afterwards.

    Backwards nothing is done twice: consumers find in their ledger what they have settled, as long as they work with the
    same account store. To give a consumer some events again while it runs, use 'siwa replay --to-consumer'. FORWARDS, what is
    passed over is never processed by the group: its obligations are then yours. They can be replayed for as long as the topic
    keeps them.

    Exit codes: 0 done, or nothing is to be changed, 1 the group has members, or the place is not there, 2 the command line
    or the configuration has to change first, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample(
      "siwa topics reset-group --group siwa-data-eraser --to beginning --dry-run", "What would be changed."),
    CommandExample(
      "siwa topics reset-group --group siwa-data-eraser --to 2026-05-03T10:00:00Z --yes",
      "Everything since a time again, without asking."),
    CommandExample(
      "siwa topics reset-group --group shop --to 0/17 --to 3/4", "Two partitions; the others stay where they are."),
  ]

  private let group: String
  private let topic: String
  private let places: [ResetPlace]
  private let isRehearsal: Bool
  private let isConfirmed: Bool
  private let access: TopicsAccess

  init(reading arguments: inout CommandArguments) {
    group = arguments.read("--group", "GROUP", .text(1...249), "The group, such as siwa-data-eraser.")
    topic = arguments.read(
      "--topic", "TOPIC", .text(1...249), default: Topic.accountEvents.name, "The topic that the group reads.")
    places = arguments.readAll(
      "--to", "PLACE", .resetPlace,
      "Where it is to go on: committed (where it is: only notes go), beginning, end, a time (the first record that was "
        + "appended then or later), or a record (PARTITION/OFFSET), in that partition alone, and may be repeated then.")
    isRehearsal = arguments.flag("--dry-run", "Says what would be changed, and changes nothing.")
    isConfirmed = arguments.flag("--yes", "Does not ask.")
    access = TopicsAccess(reading: &arguments)
    if places.isEmpty { arguments.refuse("--to is missing; expected committed, beginning, end, a time, or records") }
    if places.count > 1, Set(places.compactMap { $0.record?.partition }).count < places.count {
      arguments.refuse("--to: one place, or records of different partitions")
    }
  }

  func run() async -> ExitCode {
    await access.run { admin throws(KafkaError) in
      let reset = GroupReset(
        ConsumerGroup(group), on: Topic(name: topic), to: target, within: TopicsAccess.patience)
      let changes: [GroupReset.Change]
      switch try await reset.judge(with: admin) {
      case .change(let some, let isNew):
        changes = some
        // Otherwise a name that is mistyped would be taken for a group that needs no change.
        if isNew { Terminal.complain("siwa: \(group) has committed nothing on \(topic): is that the group's name?") }
      case .refused(let refusal):
        Terminal.complain("siwa: \(refusal)")
        return .failure
      }
      tell(changes)
      if changes.isEmpty || isRehearsal { return .success }
      guard isConfirmed || confirms(changes) else { return .misuse }
      try await reset.apply(changes, with: admin)
      Terminal.complain("reset: \(changes.count) partitions of \(topic) for \(group)")
      return .success
    }
  }

  private var target: GroupReset.Target {
    switch places.first {
    case .committed: .committed
    case .beginning: .beginning
    case .end: .end
    case .place(.time(let time)): .time(time)
    case .place(.record), nil:
      .records(Dictionary(places.compactMap(\.record), uniquingKeysWith: { first, _ in first }))
    }
  }

  private func tell(_ changes: [GroupReset.Change]) {
    if access.isJSON {
      return access.say(
        .array(
          changes.map { change in
            [
              "partition": .integer(Int64(change.partition)), "from": change.from.map { .integer($0) } ?? .null,
              "to": .integer(change.to), "distance": .integer(change.distance),
            ]
          }))
    }
    for change in changes where change.isMove {
      let distance = change.distance > 0 ? "+\(change.distance)" : "\(change.distance)"
      Terminal.say("\(topic)/\(change.partition)  \(change.from.map(String.init) ?? "-") -> \(change.to)  \(distance)")
    }
    if changes.isEmpty { Terminal.say("Nothing is to be changed: the group goes on there by itself.") }
    let skipped = changes.map(\.distance).filter { $0 > 0 }.reduce(0, +)
    if skipped > 0 { Terminal.complain("The group would never process \(skipped) of what it passes over.") }
    let noted = changes.filter { !$0.isMove }.count
    if noted > 0 {
      Terminal.complain("Partitions in which the group stays, without the note beside its offset: \(noted)")
    }
  }

  /// Asks on the terminal; without one, says what is missing.
  private func confirms(_ changes: [GroupReset.Change]) -> Bool {
    guard isatty(STDIN_FILENO) == 1 else {
      Terminal.complain("siwa: nobody can be asked here: say --yes")
      return false
    }
    Terminal.complain("Type the name of the group to have it go on there:")
    if readLine(strippingNewline: true) == group { return true }
    Terminal.complain("siwa: nothing was done")
    return false
  }
}

/// Where a group is to go on, as the command line names it.
private enum ResetPlace: Sendable {
  case committed
  case beginning
  case end
  case place(RecordPlace)

  var text: String {
    switch self {
    case .committed: "committed"
    case .beginning: "beginning"
    case .end: "end"
    case .place(let place): place.text
    }
  }

  var record: (partition: Int32, offset: Int64)? {
    guard case .place(.record(let partition, let offset)) = self else { return nil }
    return (partition, offset)
  }
}

extension SettingType where Value == ResetPlace {
  fileprivate static var resetPlace: SettingType {
    SettingType(
      "place",
      expected: "committed, beginning, end, a time such as 2026-05-03T10:00:00Z, or a partition and an offset: 0/17",
      standIn: .beginning, show: \.text
    ) { text in
      switch text {
      case "committed": .committed
      case "beginning": .beginning
      case "end": .end
      default: RecordPlace(text).map { .place($0) }
      }
    }
  }
}
