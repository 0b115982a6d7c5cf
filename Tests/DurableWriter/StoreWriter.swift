import AccountEvents
import AccountStore
import EventLoop

/// Settles events in an account store, in batches, as any number of processes may do at once.
@Loop
struct StoreWriter {
  /// How many events a batch has.
  static let batch = 16

  private let store: any AccountStore

  /// Opens the store in `directory`: `store.sqlite`, with the key in `master-key`.
  init(_ directory: String) async throws {
    store = try await StoreSettings(
      database: .sqlite(path: "\(directory)/store.sqlite"), masterKeyFile: "\(directory)/master-key"
    ).open()
  }

  /// Settles the batch that begins with the event `first`, and returns how many of its events were not settled before.
  func settle(from first: Int) async throws -> Int {
    var settlements: [Settlement] = []
    for number in first..<first + Self.batch { settlements.append(try Self.settlement(number)) }
    return try await store.settle(settlements, at: Self.time).count {
      if case .applied = $0 { true } else { false }
    }
  }

  private static func settlement(_ number: Int) throws -> Settlement {
    guard let id = EventID("event-\(number)"), let team = TeamID("A1B2C3D4E5"),
      let subject = AppleSubject("person-\(number)"),
      let address = RelayAddress("\(number)@example.com")
    else { throw AccountStoreError(.failed, "a sample that is not valid") }
    let event = EventReference(
      id: id, account: Account(team: team, subject: subject), occurredAt: time,
      origin: EventOrigin(topic: "apple.account-events.v1", partition: 0, offset: Int64(number)),
      weight: EventWeight(severity: 0, tie: 0), yieldsTo: [])
    let state = RelayState(status: .enabled, address: address, isPrivate: true, since: time)
    let said = Announcement(
      topic: Topic(name: "apple.email-relay.v1"), key: event.account.key, value: Array("\(number)".utf8), headers: [])
    return Settlement(of: event, by: "email-relay", outcome: "set", changes: [.setRelay(state)], announcements: [said])
  }

  private static let time = Timestamp(seconds: 1_800_000_000) ?? .now
}
