import AccountEvents
import AccountStore
import EventLoop

/// Settles events in an account store, in batches, as any number of processes may do at once.
@Loop
struct StoreWriter {
  /// How many events a batch has.
  static let batch = 16

  private static let consumer: ConsumerName = "email-relay"
  private static let partition = SourcePartition(topic: "apple.account-events.v1", partition: 0)

  private let store: any AccountStore
  private let claim: Int64

  /// Opens the store in `directory`: `store.sqlite`, with the key in `master-key`.
  init(_ directory: String) async throws {
    store = try await Self.settings(directory).open()
    claim = try await store.claim([PartitionClaim(Self.partition)], for: Self.consumer)[0].claim
  }

  /// Where the store in `directory` is.
  static func settings(_ directory: String) -> StoreSettings {
    StoreSettings(database: .sqlite(path: "\(directory)/store.sqlite"), masterKeyFile: "\(directory)/master-key")
  }

  /// Settles the batch that begins with the event `first`, and with it the mark behind its last; returns how many of its
  /// events were not settled before.
  func settle(from first: Int) async throws -> Int {
    var settlements: [Settlement] = []
    for number in first..<first + Self.batch { settlements.append(try settlement(number)) }
    let mark = AnnouncedMark(
      consumer: Self.consumer, partition: Self.partition, claim: claim, offset: Int64(first + Self.batch),
      beyond: "behind \(first)")
    return try await store.settle(settlements, announced: [mark], at: Self.time).outcomes.count { $0 == .applied }
  }

  private func settlement(_ number: Int) throws -> Settlement {
    guard let id = EventID("event-\(number)"), let team = TeamID("A1B2C3D4E5"),
      let subject = AppleSubject("person-\(number)"),
      let address = RelayAddress("\(number)@example.com")
    else { throw AccountStoreError(.failed, "a sample that is not valid") }
    let account = Account(team: team, subject: subject)
    let event = EventReference(
      id: id, account: account, hash: store.hash(of: account), occurredAt: Self.time,
      origin: EventOrigin(
        topic: Self.partition.topic, partition: Self.partition.partition, offset: Int64(number)),
      weight: EventWeight(severity: 0, tie: 0), yieldsTo: [])
    let state = RelayState(status: .enabled, address: address, isPrivate: true, since: Self.time)
    return Settlement(of: event, by: Self.consumer, outcome: "set", changes: [.setRelay(state)])
  }

  private static let time = Timestamp(seconds: 1_800_000_000) ?? .now
}
