package import AccountEvents

/// An event of our own that waits in the store to be published: it was written in the transaction of what it announces.
package struct OutboxRecord: Sendable, Hashable {
  /// The event's id. Whoever reads the topic knows an event by it that was published twice.
  package let id: EventID
  /// The record as it is to be published.
  package let record: EventRecord
  /// When it was written.
  package let writtenAt: Timestamp
}

/// Some of the events that wait.
package struct OutboxPage: Sendable, Hashable {
  /// A place in the order in which events were written.
  package struct Place: Sendable, Hashable {
    let number: Int64
  }

  /// Those that open, in their order.
  package private(set) var records: [OutboxRecord] = []
  /// Those that do not: `siwa store integrity` says why. They must not keep all others from being published.
  package private(set) var damaged: [EventID] = []
  /// Behind which there may be more; nil where there are none.
  package let end: Place?

  /// Opens what was read, where `limit` were asked for.
  init(opening rows: [SealedOutboxRecord], of limit: Int, with master: MasterKey) {
    end = rows.count < limit ? nil : rows.last.map { Place(number: $0.number) }
    for row in rows {
      do throws(AccountStoreError) { records.append(try row.open(with: master)) } catch { damaged.append(row.id) }
    }
  }
}

/// What waits to be published.
package struct OutboxState: Sendable, Hashable {
  /// How many events.
  package let waiting: Int
  /// Since when the first of them; nil where there is none.
  package let oldest: Timestamp?

  /// A state from its parts.
  package init(waiting: Int, oldest: Timestamp?) { (self.waiting, self.oldest) = (waiting, oldest) }
}

/// Such an event as a database keeps it: it names a person, so it is sealed with the master key.
struct SealedOutboxRecord {
  /// The lease of whoever publishes.
  static let lease = "outbox"

  /// Where it stands in the order of all; what is not written yet has no number of its own.
  var number: Int64 = 0
  let id: EventID
  let account: AccountID
  let writtenAt: Timestamp
  let masterKeyID: String
  let record: [UInt8]

  /// Opens it.
  func open(with master: MasterKey) throws(AccountStoreError) -> OutboxRecord {
    let bytes = try master.unwrap(record, from: .outbox(id), ofKey: masterKeyID)
    guard let record = EventRecord(outboxBytes: bytes) else {
      throw AccountStoreError(.damaged, "an event of the outbox: not of the form in which it was written")
    }
    return OutboxRecord(id: id, record: record, writtenAt: writtenAt)
  }
}

extension StoreKeys {
  /// An event of an account, as it is kept until it is published.
  func seal(
    _ record: EventRecord, _ id: EventID, of account: AccountID, at time: Timestamp
  ) throws(AccountStoreError) -> SealedOutboxRecord {
    SealedOutboxRecord(
      id: id, account: account, writtenAt: time, masterKeyID: master.id,
      record: try master.wrap(record.outboxBytes, for: .outbox(id)))
  }

  /// The event that announces a deletion, with the code that vouches for it.
  func seal(
    _ deletion: Deletion, of account: Account, at time: Timestamp
  ) throws(AccountStoreError) -> SealedOutboxRecord {
    try seal(deletion.event(of: account), of: deletion.account, at: time)
  }

  /// The name of an event's account outside of the store.
  func id(of event: EventReference) -> AccountID {
    // Its hash is that, as long as there is no other key.
    (generation == 1 ? AccountID(bytes: event.hash.bytes) : nil) ?? id(of: event.account)
  }

  /// The name of the account outside of the store.
  func id(of account: Account) -> AccountID {
    guard let first = hashing.hashes(of: account).first, let id = AccountID(bytes: first.bytes) else {
      preconditionFailure("a store has a first hashing key")
    }
    return id
  }
}

extension EventRecord {
  /// Key, value, and the headers' names and values, packed.
  fileprivate var outboxBytes: [UInt8] {
    ([key ?? [], value] + headers.flatMap { [Array($0.name.utf8), $0.value] }).packed
  }

  /// Nil unless the bytes are those of a record of an account.
  fileprivate init?(outboxBytes bytes: [UInt8]) {
    guard let parts = [[UInt8]](packed: bytes), parts.count >= 2, parts.count.isMultiple(of: 2) else { return nil }
    var headers: [Header] = []
    for index in stride(from: 2, to: parts.count, by: 2) {
      guard let name = String(validating: parts[index], as: UTF8.self) else { return nil }
      headers.append(Header(name: name, value: parts[index + 1]))
    }
    self.init(topic: .accountEvents, key: parts[0], value: parts[1], headers: headers)
  }
}

extension StoreReport {
  /// Opens what waits to be published.
  mutating func note(_ waiting: [SealedOutboxRecord], with master: MasterKey) {
    for row in waiting {
      do throws(AccountStoreError) { _ = try row.open(with: master) } catch {
        note("event \(row.id) of the outbox: \(error.detail)")
      }
    }
  }
}
