import AccountEvents
import AccountServices
import EventLoop
import Foundation
import Kafka
import SQLite
import TestSupport
import Testing

@Suite struct AuditIndexTests {
  private let files = TemporaryDirectory()
  private let key = EntryKey(.obligation(AuditSamples.obligation))

  @Test func knowsAKeyOnce() throws {
    let index = try AuditIndex.open(in: files.path)
    #expect(try index.number(of: key) == nil)
    #expect(try index.add(key, 7))
    #expect(try !index.add(key, 8))
    #expect(try index.number(of: key) == 7)
  }

  @Test func findsTheEntriesOfAnEvent() throws {
    let index = try AuditIndex.open(in: files.path)
    for (number, (name, entry)) in AuditSamples.golden.enumerated() {
      #expect(try index.add(EntryKey(entry), UInt64(number)) == (name != "obligation-rekeyed"))
    }
    #expect(try index.numbers(of: AuditSamples.id, limit: 10) == [0, 3, 4, 5])
    #expect(try index.numbers(of: AuditSamples.id, limit: 2) == [0, 3])
    let another = try #require(EventID("another"))
    #expect(try index.numbers(of: another, limit: 10) == [])
  }

  @Test func keepsWhatIsCommittedAndNothingElse() throws {
    let place = TopicPartition("t", 3)
    do {
      let index = try AuditIndex.open(in: files.path)
      _ = try index.add(key, 0)
      try index.set(CommittedOffset(18, note: "1 2 3"), of: place)
      try index.commit(.init(size: 1, lastLeaf: [1, 2]))
      _ = try index.add(EntryKey(.gap(AuditSamples.gap)), 1)
      try index.set(CommittedOffset(19), of: place)
    }
    let index = try AuditIndex.open(in: files.path)
    #expect(index.extent == .init(size: 1, lastLeaf: [1, 2]))
    #expect(try index.number(of: key) == 0)
    #expect(try index.number(of: EntryKey(.gap(AuditSamples.gap))) == nil)
    #expect(try index.positions() == [place: CommittedOffset(18, note: "1 2 3")])
    try index.clear()
    #expect(index.extent.size == 0 && index.extent.lastLeaf == [])
    #expect(try index.number(of: key) == nil && index.positions() == [:])
  }

  @Test func othersLookIntoItMeanwhile() throws {
    #expect(try AuditIndex.look(into: files.path) == nil)
    let index = try AuditIndex.open(in: files.path)
    _ = try index.add(key, 0)
    let reader = try #require(try AuditIndex.look(into: files.path))
    #expect(try reader.number(of: key) == nil)
    try index.commit(.init(size: 1, lastLeaf: [1]))
    #expect(try reader.number(of: key) == 0)
    #expect(try AuditIndex.look(into: files.path)?.extent.size == 1)
  }

  @Test(arguments: ["garbage", "a later version", "half of it"])
  func whatIsNoIndexIsMadeAnew(_ damage: String) throws {
    let path = files.path + "/" + AuditIndex.fileName
    switch damage {
    case "garbage": _ = files.write(AuditIndex.fileName, [UInt8](repeating: 7, count: 10_000))
    case "a later version":
      let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .zero)
      try database.execute("PRAGMA user_version = 99")
    default:
      let index = try AuditIndex.open(in: files.path)
      _ = try index.add(key, 0)
      try index.commit(.init(size: 1, lastLeaf: [1]))
    }
    if damage == "half of it" {
      let handle = try #require(FileHandle(forUpdatingAtPath: path))
      try handle.truncate(atOffset: 5000)
      for suffix in ["-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
        try FileManager.default.removeItem(atPath: path + suffix)
      }
    }
    let index = try AuditIndex.open(in: files.path)
    #expect(index.extent.size == 0)
    #expect(try index.number(of: key) == nil)
    #expect(try index.add(key, 3))
    try index.commit(.init(size: 4, lastLeaf: [1]))
  }
}
