import AccountEvents
import Dispatch
import EventLoop
import Foundation
import SQLite
import Testing

@testable import AccountStore

/// Mailers and applications ask while others write.
@Loop @Suite(.timeLimit(.minutes(30))) struct SQLiteReaderTests {
  private let rig: SQLiteRig
  private let now = Sample.time(10_000)

  init() throws { rig = try SQLiteRig() }

  @Test func mailersAndApplicationsAreAnsweredWhileASettlementIsUnderWay() async throws {
    let store = try await rig.open()
    try await store.fill(1...1)
    let (entered, end) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    // It holds the lock for writing, and its thread.
    let writing = Task {
      try await store.writer.run { file throws(AccountStoreError) in
        try file.writeRows { () throws(SQLiteError) in
          try file.database.execute("DELETE FROM mail")
          entered.continuation.yield()
          end.wait()
        }
      }
    }
    for await _ in entered.stream { break }
    let settlement = Sample.event("next", of: Sample.account(1), at: 5).settled(.setRelay(Sample.disabled(5)))
    let settling = Task { [now] in try await store.settle([settlement], at: now) }
    #expect(try await store.relayStates(of: [Sample.account(1)]) == [.known(Sample.enabled(2))], "as it was committed")
    guard case .known = try await store.knowledge(of: store.id(of: Sample.account(1))) else {
      Issue.record("an application is not told of the account")
      return
    }
    end.signal()
    try await writing.value
    #expect(try await settling.value == [.applied])
    #expect(try await store.relayStates(of: [Sample.account(1)]) == [.known(Sample.disabled(5))])
    await store.close()
  }

  /// The log that it was read from keeps what was erased no longer than the read takes.
  @Test func anErasureLeavesNothingThoughAMailerIsAnsweredMeanwhile() async throws {
    let store = try await rig.open()
    try await store.fill(1...1)
    let sealed = try #require(try sealedAddress())
    #expect(try rig.content().range(of: Data(sealed)) != nil)
    let (entered, end) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    let reading = Task {
      try await store.readers.run { reader throws(AccountStoreError) in
        try reader.snapshot { () throws(AccountStoreError) in
          _ = try AccountStoreError.translating { () throws(SQLiteError) in
            try reader.relays.facts(of: Sample.hash(of: Sample.account(1)))
          }
          entered.continuation.yield()
          end.wait()
        }
      }
    }
    for await _ in entered.stream { break }
    let deletion = Sample.event("d", of: Sample.account(1), at: 9)
      .settled(by: Sample.eraser, .eraseAccount(isFinal: true))
    let settling = Task { [now] in try await store.settle([deletion], at: now) }
    while try rig.number("SELECT count(*) FROM account") != 0 { await Task.yield() }
    end.signal()
    try await reading.value
    #expect(try await settling.value == [.applied])
    #expect(try rig.content().range(of: Data(sealed)) == nil)
    await store.close()
  }

  private func sealedAddress() throws -> [UInt8]? {
    try Database(rig.path, .readOnly, busyTimeout: .seconds(300)).prepare("SELECT address FROM mail").first {
      row throws(SQLiteError) in try row.value(0)
    }
  }
}
