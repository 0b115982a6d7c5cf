import EventLoop
import Foundation
import Glibc
import SQLite
import TestSupport
import Testing

@testable import AccountServices

/// The directory and the files of a spool: whose they are, and what is in them.
@Loop @Suite(.serialized) struct SpoolDirectoryTests {
  private let rig = SpoolRig()

  private func mode(of name: String) -> mode_t {
    var status = stat()
    return unsafe stat("\(rig.files.path)/\(name)", &status) == 0 ? status.st_mode & 0o777 : 0
  }

  private func size(of name: String) -> Int {
    var status = stat()
    return unsafe stat("\(rig.directory)/\(name)", &status) == 0 ? Int(status.st_size) : -1
  }

  /// The names of what was set aside.
  private var setAside: [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: rig.directory).filter { $0.hasPrefix("damaged-") }
    } catch {
      Issue.record(error)
      return []
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func nobodyElseReadsIt() async throws {
    try await rig.open { spool in
      _ = try await spool.insert(SpoolRig.record(1))
      #expect(mode(of: "spool") == 0o700)
      for name in ["spool.sqlite", "spool.sqlite-wal", "spool.sqlite-shm", "lock"] {
        #expect(mode(of: "spool/\(name)") == 0o600, "\(name)")
      }
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func oneAtATimeHasIt() async throws {
    let copies = try await rig.open { spool in
      _ = try await spool.insert(SpoolRig.record(1))
      let refusal = try await rig.refusal()
      #expect(refusal?.code == .inUse)
      #expect(
        refusal?.description
          == "the spool in \(rig.directory): another process has it; each process needs a directory of its own")
      _ = try await spool.insert(SpoolRig.record(2))
      return DescriptorCopies(of: rig.directory + "/lock")
    }
    // The next one waits for no program that is being started.
    try await rig.open { #expect($0.depth == 2) }
    #expect(copies.count == 1, "they were there until now")
  }

  @Test(.timeLimit(.minutes(30)))
  func aDirectoryThatOthersWriteToIsNotUsed() async throws {
    #expect(try await rig.refusal(rig.files.path + "/no/where")?.code == .unusableDirectory)
    #expect(try await rig.refusal(rig.files.write("file", ""))?.code == .unusableDirectory)
    #expect(unsafe mkdir(rig.directory, 0o700) == 0 && chmod(rig.directory, 0o777) == 0)
    #expect(try await rig.refusal()?.code == .unusableDirectory)
  }

  @Test(.timeLimit(.minutes(30)))
  func somebodyElsesDatabaseIsLeftAlone() async throws {
    #expect(unsafe mkdir(rig.directory, 0o700) == 0)
    do {
      let other = try Database(rig.directory + "/spool.sqlite", .readWrite(pageSize: 4096), busyTimeout: .zero)
      try other.execute("CREATE TABLE other (value INTEGER) STRICT")
    }
    let refusal = try await rig.refusal()
    #expect(refusal?.code == .notASpool && refusal?.detail == "spool.sqlite is not a spool")
    #expect(setAside.isEmpty)
  }

  @Test(.timeLimit(.minutes(30)))
  func aLaterVersionIsLeftAlone() async throws {
    try await rig.open { _ = try await $0.insert(SpoolRig.record(1)) }
    do {
      let later = try Database(rig.directory + "/spool.sqlite", .readWrite(pageSize: 4096), busyTimeout: .zero)
      try later.execute("PRAGMA user_version = 3")
    }
    let refusal = try await rig.refusal()
    #expect(refusal?.code == .newerVersion)
    #expect(refusal?.detail == "spool.sqlite is of version 3, and this program knows 2 at most")
  }

  @Test(.timeLimit(.minutes(30)))
  func theFirstVersionIsTakenOver() async throws {
    try await rig.open { for number in 1...3 { _ = try await $0.insert(SpoolRig.record(number)) } }
    do {
      let former = try Database(rig.directory + "/spool.sqlite", .readWrite(pageSize: 4096), busyTimeout: .zero)
      try former.execute("DROP VIEW held; DROP TABLE gone; PRAGMA user_version = 1")
    }
    let refusal = #expect(throws: SpoolError.self) { try SpoolReport(lookingInto: rig.directory, listing: 0) }
    #expect(refusal?.detail == "spool.sqlite is of version 1, until the ingress starts on it")
    try await rig.open { spool in
      await spool.remove(2)
      let left = try await spool.read(after: 0, limit: 10).map(\.record.number)
      #expect(left == [1, 3])
    }
    #expect(try SpoolReport(lookingInto: rig.directory, listing: 0).records == 2)
  }

  @Test(.timeLimit(.minutes(30)))
  func damageIsSeenAtTheStartAndSetAside() async throws {
    try await rig.open { spool in
      for number in 1...50 { _ = try await spool.insert(SpoolRig.record(number, size: 3000)) }
    }
    let descriptor = unsafe open(rig.directory + "/spool.sqlite", O_WRONLY)
    let noise = [UInt8](repeating: 0xff, count: 64)
    #expect(unsafe pwrite(descriptor, noise, noise.count, 4 * 16_384) == noise.count)
    close(descriptor)
    let damaged = size(of: "spool.sqlite")
    try await rig.open { spool in
      #expect(spool.depth == 0 && rig.metric("siwa_spool_set_aside") == "1")
      _ = try await spool.insert(SpoolRig.record(51))
      let lines = rig.log.lines.filter { $0.contains("is damaged: it was set aside") }
      #expect(lines.count == 1 && lines.first?.contains(#""level":"error""#) == true)
      #expect(lines.first?.contains("spool.sqlite: corrupt: ") == true)
    }
    let place = try #require(setAside.first)
    #expect(setAside.count == 1 && size(of: place + "/spool.sqlite") == damaged)
    #expect(mode(of: "spool/\(place)") == 0o700)
    try await rig.open { spool in
      #expect(spool.depth == 1 && rig.metric("siwa_spool_set_aside") == "1", "it is still there")
    }
    #expect(unsafe unlink("\(rig.directory)/\(place)/spool.sqlite") == 0 && rmdir("\(rig.directory)/\(place)") == 0)
    try await rig.open { _ in #expect(rig.metric("siwa_spool_set_aside") == "0") }
  }

  @Test(.timeLimit(.minutes(30)))
  func whatIsNoDatabaseIsSetAside() async throws {
    #expect(unsafe mkdir(rig.directory, 0o700) == 0)
    _ = rig.files.write("spool/spool.sqlite", String(repeating: "garbage", count: 1000))
    try await rig.open { _ = try await $0.insert(SpoolRig.record(1)) }
    #expect(size(of: try #require(setAside.first) + "/spool.sqlite") == 7000)
  }

  /// The process was killed after it had moved the database, and before it had moved its log.
  @Test(.timeLimit(.minutes(30)))
  func aLogWithoutItsDatabaseFollowsIt() async throws {
    #expect(unsafe mkdir(rig.directory, 0o700) == 0)
    // The clock was wrong by years when one was set aside; another one never had a log.
    let (later, earlier) = ("damaged-2039-12-01T00-00-00.000Z", "damaged-2025-12-02T00-00-00.000Z")
    for name in [later, earlier + ".part"] {
      #expect(unsafe mkdir("\(rig.directory)/\(name)", 0o700) == 0)
      _ = rig.files.write("spool/\(name)/spool.sqlite", "a database")
    }
    for (log, places) in [("its log", 2), ("the log of nothing that is here", 3)] {
      _ = rig.files.write("spool/spool.sqlite-wal", log)
      _ = rig.files.write("spool/spool.sqlite-shm", "what nobody shares")
      try await rig.open { spool in
        _ = try await spool.insert(SpoolRig.record(1))
        #expect(rig.metric("siwa_spool_set_aside") == "\(places)")
      }
      #expect(unsafe unlink(rig.directory + "/spool.sqlite") == 0)
    }
    #expect(setAside.allSatisfy { !$0.hasSuffix(".part") })
    #expect(size(of: later + "/spool.sqlite-wal") == -1)
    #expect(size(of: earlier + "/spool.sqlite-wal") == 7)
    let third = try #require(setAside.first { ![later, earlier].contains($0) })
    #expect(size(of: third + "/spool.sqlite-wal") == 31 && size(of: third + "/spool.sqlite") == -1)
  }

  /// As a copy that was broken off leaves it. SQLite would take the database for a new one, and remove the log.
  @Test(.timeLimit(.minutes(30)))
  func aLogBesideAnEmptyDatabaseIsSetAsideWithIt() async throws {
    #expect(unsafe mkdir(rig.directory, 0o700) == 0)
    _ = rig.files.write("spool/spool.sqlite", "")
    _ = rig.files.write("spool/spool.sqlite-wal", "records")
    try await rig.open { _ = try await $0.insert(SpoolRig.record(1)) }
    let place = try #require(setAside.first)
    #expect(size(of: place + "/spool.sqlite") == 0 && size(of: place + "/spool.sqlite-wal") == 7)
  }

  /// The process was killed before it had moved anything.
  @Test(.timeLimit(.minutes(30)))
  func anEmptyPlaceForADamagedFileIsRemoved() async throws {
    try await rig.open { _ = try await $0.insert(SpoolRig.record(1)) }
    #expect(unsafe mkdir("\(rig.directory)/damaged-2025-12-02T00-00-00.000Z.part", 0o700) == 0)
    try await rig.open { #expect($0.depth == 1) }
    #expect(setAside.isEmpty)
  }

  @Test(.timeLimit(.minutes(30)))
  func nothingLingersOnceItIsEmpty() async throws {
    try await rig.open { spool in
      for number in 1...100 { _ = try await spool.insert(SpoolRig.record(number, of: "lingering", size: 10_000)) }
      #expect(size(of: "spool.sqlite") + size(of: "spool.sqlite-wal") > 1_000_000)
      for record in try await spool.read(after: 0, limit: 1000) { await spool.remove(record.sequence) }
      try await until { size(of: "spool.sqlite-wal") == 0 }
      #expect(size(of: "spool.sqlite") <= 3 * 16_384)
      // Read by another process: closing a descriptor of the file here would take SQLite's locks away.
      let outcome = try await RunningProgram.finish(
        path: "/usr/bin/grep", ["-c", "lingering", rig.directory + "/spool.sqlite"])
      #expect(outcome.output == "0\n")
      _ = try await spool.insert(SpoolRig.record(7))
      #expect(spool.depth == 1)
    }
  }
}
