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
      _ = try await settings.administration().migrate()
      let store = try await settings.open()
      var numbers: [Int64] = []
      let settled = try await measure("settled   ") { first in
        // With what the consumer has published of the batch before.
        let outcomes = try await store.settle(settlements(first), forgetting: numbers, at: time(first)).outcomes
        numbers = outcomes.reduce(into: []) { numbers, outcome in
          if case .applied(let number?) = outcome { numbers.append(number) }
        }
      }
      let repeated = try await measure("repeated  ") { first in
        _ = try await store.settle(settlements(first), at: time(first))
      }
      await store.close()
      if postgresql != nil { return 0 }
      let inserted = try await measureBare()
      print("ratio      \(rounded(settled / inserted)) settled, \(rounded(repeated / inserted)) repeated")
      return 0
    } catch {
      print(error)
      return 1
    }
  }

  /// SQLite alone.
  @Loop
  private func measureBare() async throws -> Double {
    let bare = try Bare("\(directory)/bare.sqlite")
    let thread = BlockingThread(named: "bare")
    return try await measure("SQLite    ") { first in
      try await thread.run(throwing: { try bare.insert(first..<min(first + batch, count), of: accounts) })
    }
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

  /// Runs batch after batch, and returns the CPU time of one event.
  @Loop
  private func measure(_ what: String, _ body: @Loop (Int) async throws -> Void) async throws -> Double {
    let (start, before) = (MonotonicTime.now, cpuTime())
    for first in stride(from: 0, to: count, by: batch) { try await body(first) }
    let (seconds, cost) = ((MonotonicTime.now - start) / .seconds(1), (cpuTime() - before) / Double(count))
    print(what, "\(Int(Double(count) / seconds)) a second, \(rounded(cost)) µs CPU")
    return cost
  }

  private func rounded(_ amount: Double) -> Double { (amount * 100).rounded() / 100 }

  private func time(_ number: Int) -> Timestamp { Timestamp(milliseconds: 1_800_000_000_000 + Int64(number)) ?? .now }

  private func settlements(_ first: Int) throws -> [Settlement] {
    var settlements: [Settlement] = []
    for number in first..<first + batch {
      guard let id = EventID("S25cB0PbHs6y97gYYmg-\(number)"), let team = TeamID("A1B2C3D4E5"),
        let subject = AppleSubject("\(number % accounts).6166f031167141e695698239959f591a.1521"),
        let address = RelayAddress("\(number % accounts)abcdefghij@privaterelay.appleid.com")
      else { throw AccountStoreError(.failed, "a sample that is not valid") }
      let account = Account(team: team, subject: subject)
      let event = EventReference(
        id: id, account: account, occurredAt: time(number),
        origin: EventOrigin(topic: "apple.account-events.v1", partition: Int32(number % 12), offset: Int64(number)),
        weight: EventWeight(severity: 0, tie: number % 2), yieldsTo: [.erasure])
      let state = RelayState(
        status: number.isMultiple(of: 2) ? .enabled : .disabled, address: address, isPrivate: true,
        since: event.occurredAt)
      let said = Announcement(
        topic: Topic(name: "apple.email-relay.v1"), key: account.key, value: [UInt8](repeating: 0x76, count: 160),
        headers: [EventRecord.Header(name: "ce_id", value: Array(id.text.utf8))])
      settlements.append(
        Settlement(
          of: event, by: "email-relay", outcome: "relay-changed", changes: [.setRelay(state)], announcements: [said]))
    }
    return settlements
  }

  private func write(_ text: String, to path: String) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    let bytes = Array(text.utf8)
    guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw SystemError.current }
    close(descriptor)
  }

  /// Of this process, in microseconds.
  private func cpuTime() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
  }
}
