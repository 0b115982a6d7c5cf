import AccountEvents
import AccountStore
import Configuration
import EventLoop
import Glibc

/// The work that is measured.
struct Load: Sendable {
  let directory: String
  let count: Int
  let accounts: Int
  let batch: Int
  /// What libpq wants to hear of a database for the store; nil for one of SQLite's.
  let postgresql: String?

  private static let topic = "apple.account-events.v1"
  private static let consumer: ConsumerName = "email-relay"

  @Loop
  func run() async -> Int32 {
    do {
      let key = "\(directory)/master-key"
      try write(try MasterKey.newText(), to: key)
      let database: StoreSettings.Database =
        if let postgresql { .postgresql(Secret(postgresql), connections: 1) } else {
          .sqlite(path: "\(directory)/store.sqlite")
        }
      let settings = StoreSettings(database: database, masterKeyFile: key)
      _ = try await settings.administration().begin()
      let store = try await settings.open()
      var marks = try await store.claim(
        (0..<12).map { PartitionClaim(SourcePartition(topic: Self.topic, partition: $0)) }, for: Self.consumer)
      var settled = Cost()
      for first in stride(from: 0, to: count, by: batch) {
        let settlements = try settlements(first, store)
        for index in marks.indices { marks[index].offset += 1 }
        try await settled.add { _ = try await store.settle(settlements, announced: marks, at: .now) }
      }
      settled.tell("settled   ", of: count)
      var repeated = Cost()
      for first in stride(from: 0, to: count, by: batch) {
        let settlements = try settlements(first, store)
        try await repeated.add { _ = try await store.settle(settlements, at: .now) }
      }
      repeated.tell("repeated  ", of: count)
      await store.close()
      if postgresql != nil { return 0 }
      let inserted = try await measureBare()
      print(
        "ratio      \(rounded(settled.cpu / inserted.cpu)) settled, \(rounded(repeated.cpu / inserted.cpu)) repeated")
      return 0
    } catch {
      print(error)
      return 1
    }
  }

  /// SQLite alone.
  @Loop
  private func measureBare() async throws -> Cost {
    let bare = try Bare("\(directory)/bare.sqlite")
    let thread = BlockingThread(named: "bare")
    var inserted = Cost()
    for first in stride(from: 0, to: count, by: batch) {
      try await inserted.add {
        try await thread.run(throwing: { try bare.insert(first..<min(first + batch, count), of: accounts) })
      }
    }
    inserted.tell("SQLite    ", of: count)
    return inserted
  }

  @Loop
  func runBare() async -> Int32 {
    do {
      _ = try await measureBare()
      return 0
    } catch {
      print(error)
      return 1
    }
  }

  private func time(_ number: Int) -> Timestamp { Timestamp(milliseconds: 1_800_000_000_000 + Int64(number)) ?? .now }

  private func settlements(_ first: Int, _ store: any AccountStore) throws -> [Settlement] {
    var settlements: [Settlement] = []
    for number in first..<first + batch {
      // Apple's identifiers come in no order.
      guard let id = EventID("S25cB0Pb\(String(mixed(UInt64(number)), radix: 36))"), let team = TeamID("A1B2C3D4E5"),
        let subject = AppleSubject("\(number % accounts).6166f031167141e695698239959f591a.1521"),
        let address = RelayAddress("\(number % accounts)abcdefghij@privaterelay.appleid.com")
      else { throw AccountStoreError(.failed, "a sample that is not valid") }
      let account = Account(team: team, subject: subject)
      let event = EventReference(
        id: id, account: account, hash: store.hash(of: account), occurredAt: time(number),
        origin: EventOrigin(topic: Self.topic, partition: Int32(number % 12), offset: Int64(number)),
        weight: EventWeight(severity: 0, tie: number % 2), yieldsTo: [.erasure])
      let state = RelayState(
        status: number.isMultiple(of: 2) ? .enabled : .disabled, address: address, isPrivate: true,
        since: event.occurredAt)
      settlements.append(
        Settlement(of: event, by: Self.consumer, outcome: "relay-changed", changes: [.setRelay(state)]))
    }
    return settlements
  }

  private func write(_ text: String, to path: String) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    let bytes = Array(text.utf8)
    guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw SystemError.current }
    close(descriptor)
  }
}

/// What something takes, batch after batch.
struct Cost {
  private var time = Duration.zero
  /// CPU time of this process, in microseconds.
  private(set) var cpu = 0.0

  /// Adds what `body` takes.
  @Loop
  mutating func add(_ body: @Loop () async throws -> Void) async throws {
    let (start, before) = (MonotonicTime.now, Self.cpuTime())
    try await body()
    time += MonotonicTime.now - start
    cpu += Self.cpuTime() - before
  }

  /// Says it, of one among so many.
  func tell(_ what: String, of count: Int) {
    print(what, "\(Int(Double(count) / (time / .seconds(1)))) a second, \(rounded(cpu / Double(count))) µs CPU")
  }

  private static func cpuTime() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
  }
}

private func rounded(_ amount: Double) -> Double { (amount * 100).rounded() / 100 }
