import AccountEvents
import AccountServices
import AccountStore
import EventLoop
import Glibc
import SQLite
import Synchronization
import Telemetry

/// Writes until it is killed, and says on its standard output what it was promised to be durable.
///
///     durable-writer database FILE FIRST     inserted N        in transactions of its own, from FIRST on
///     durable-writer spool DIRECTORY FIRST   inserted N, removing N, removed N
///     durable-writer drain DIRECTORY COUNT   removing N, removed N; kills itself when it has said the latter so often
///     durable-writer store DIRECTORY FIRST   settled N         for the last event of each batch, from FIRST on
///     durable-writer compete DIRECTORY COUNT applied N         how many of so many events were not another's
///     durable-writer rotate DIRECTORY COUNT  rotated           to the key in `hash-key`; kills itself at its step of that
///                                            number, 0 for never
///     durable-writer migrate DIRECTORY 0     migrating, then migrated
///     durable-writer publish DIRECTORY COUNT answers in a file; kills itself at its step of that number, 0 for never
///     durable-writer accepted DIRECTORY FIRST written N        in batches, from FIRST on
///     durable-writer start DIRECTORY 0       what becomes of it where there is no room at the start
///     durable-writer nameless DIRECTORY 0    the same where there is no room for the names of files
///     durable-writer damaged DIRECTORY 0     the same with a file whose damage shows once there is room
///     durable-writer unreadable DIRECTORY 0  the same with one that cannot be read at all
///     durable-writer later DIRECTORY 0       the same with one of a later version's, for a while
///     durable-writer full DIRECTORY 0        refused CODE, emptied N, inserted again; for a disk of a few megabytes
@main
struct DurableWriter {
  static func main() {
    let words = CommandLine.arguments
    guard words.count == 4, let first = Int(words[3]) else { exit(2) }
    switch words[1] {
    case "database": write(into: words[2], from: first)
    case "spool": exit(Loop.run { await fill(words[2], from: first) })
    case "drain": exit(Loop.run { await empty(words[2], until: first) })
    case "store": exit(Loop.run { await settle(words[2], first...) })
    case "compete": exit(Loop.run { await settle(words[2], 0..<first) })
    case "rotate": exit(Loop.run { await rotate(words[2], untilStep: first) })
    case "migrate": exit(Loop.run { await migrate(words[2]) })
    case "publish": exit(Loop.run { await PublishingWriter.run(words[2], untilStep: first) })
    case "accepted": exit(Loop.run { await remember(words[2], from: first) })
    case "start": exit(Loop.run { await startWithoutRoom(words[2]) })
    case "nameless": exit(Loop.run { await FullDisk(directory: words[2]).start(.names) })
    case "damaged": exit(Loop.run { await FullDisk(directory: words[2]).start(.roomThenDamage) })
    case "unreadable": exit(Loop.run { await FullDisk(directory: words[2]).start(.roomAndSchema) })
    case "later": exit(Loop.run { await FullDisk(directory: words[2]).start(.roomThenVersion) })
    case "full": exit(Loop.run { await useUp(words[2]) })
    default: exit(2)
    }
  }

  /// Fills the disk, empties the spool, and fills it again.
  @Loop
  private static func useUp(_ directory: String) async -> Int32 {
    do {
      let spool = try await Spool.open(
        directory: directory, limit: 1 << 30, now: { .now }, registry: MetricsRegistry(),
        logger: Logger(level: .error, format: .text))
      for round in 0..<3 {
        do throws(SpoolError) {
          while true { _ = try await spool.insert(record(round, size: 10_000)) }
        } catch {
          say("refused \(error.code) with \(spool.depth)")
        }
        // Not even a byte is left.
        let balloon = unsafe open("\(directory)/balloon", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        let air = [UInt8](repeating: 1, count: 512)
        while unsafe Glibc.write(balloon, air, air.count) > 0 {}
        for spooled in try await spool.read(after: 0, limit: .max) { await spool.remove(spooled.sequence) }
        say("emptied \(spool.depth)")
        close(balloon)
        unsafe unlink("\(directory)/balloon")
        _ = try await spool.insert(record(round, size: 10_000))
        say("inserted again")
      }
      await spool.close()
      return 0
    } catch {
      complain("\(error)")
    }
  }

  /// Opens the spool on a full disk: with its reserve, and then without.
  @Loop
  private static func startWithoutRoom(_ directory: String) async -> Int32 {
    func open() async throws(SpoolError) -> Spool {
      try await Spool.open(
        directory: directory, limit: 1 << 30, now: { .now }, registry: MetricsRegistry(),
        logger: Logger(level: .error, format: .text))
    }
    /// Leaves not even a byte.
    func fill() {
      let balloon = unsafe Glibc.open("\(directory)-balloon", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
      let air = [UInt8](repeating: 1, count: 512)
      while unsafe Glibc.write(balloon, air, air.count) > 0 {}
      close(balloon)
    }
    func insert(_ number: Int, into spool: Spool) async {
      do throws(SpoolError) {
        _ = try await spool.insert(record(number, size: 10_000))
        say("inserted again")
      } catch {
        say("refused \(error.code)")
      }
    }
    do {
      var spool = try await open()
      for number in 0..<3 { _ = try await spool.insert(record(number, size: 10_000)) }
      await spool.close()
      say("closed with \(spool.depth)")
      fill()
      spool = try await open()
      say("opened with \(spool.depth)")
      await insert(3, into: spool)
      await spool.remove(1)
      say("left \(spool.depth)")
      await spool.close()
      fill()
      spool = try await open()
      let (held, read) = (try await spool.heldRecords(), try await spool.read(after: 0, limit: 10))
      say("waits with \(spool.depth) of \(Set(held.map(\.lane)).count) accounts, read \(read.count)")
      await insert(3, into: spool)
      unsafe unlink("\(directory)-balloon")
      // The spool tries by itself, and tells nobody but those who ask.
      while !spool.takesRecords { try await Loop.sleep(for: .milliseconds(20)) }
      say("open again with \(try await spool.read(after: 0, limit: 10).count)")
      await insert(3, into: spool)
      await spool.close()
      return 0
    } catch {
      complain("\(error)")
    }
  }

  /// How many records were taken out.
  @Loop private static var removals = 0

  /// Takes out hundreds at a time, the oldest first, and is killed in the midst of it: by itself, because whoever else did
  /// it might come too late.
  @Loop
  private static func empty(_ directory: String, until count: Int) async -> Int32 {
    do {
      let spool = try await Spool.open(
        directory: directory, limit: 1 << 30, now: { .now }, registry: MetricsRegistry(),
        logger: Logger(level: .error, format: .text))
      let records = try await spool.read(after: 0, limit: .max)
      let last = min(count, records.count)
      await withTaskGroup(of: Void.self) { group in
        for (place, spooled) in records.enumerated() {
          if place >= 500 { _ = await group.next() }
          let number = String(decoding: spooled.record.headers[0].value, as: UTF8.self).dropFirst("event-".count)
          say("removing \(number)")
          group.addTask(executorPreference: Loop.executor) {
            await spool.remove(spooled.sequence)
            await noteRemoval(of: number, last: last)
          }
        }
      }
      return 1
    } catch {
      complain("\(error)")
    }
  }

  @Loop
  private static func noteRemoval(of number: Substring, last: Int) {
    say("removed \(number)")
    removals += 1
    if removals == last { raise(SIGKILL) }
  }

  /// Settles events, batch by batch.
  @Loop
  private static func settle(_ directory: String, _ numbers: some RangeExpression<Int>) async -> Int32 {
    do {
      let range = numbers.relative(to: 0..<Int.max)
      let writer = try await StoreWriter(directory)
      say("opened")
      var applied = 0
      for first in stride(from: range.lowerBound, to: range.upperBound, by: StoreWriter.batch) {
        applied += try await writer.settle(from: first)
        if range.upperBound == .max { say("settled \(first + StoreWriter.batch - 1)") }
      }
      say("applied \(applied)")
      return 0
    } catch {
      complain("\(error)")
    }
  }

  /// Replaces the hashing key of an account store.
  @Loop
  private static func rotate(_ directory: String, untilStep last: Int) async -> Int32 {
    let steps = Atomic(0)
    do {
      let key = try HashKey(file: "\(directory)/hash-key")
      _ = try await StoreWriter.settings(directory).administration().rotateHashKey(to: key) { _ in
        if steps.wrappingAdd(1, ordering: .relaxed).newValue == last { raise(SIGKILL) }
      }
      say("rotated")
      return 0
    } catch {
      complain("\(error)")
    }
  }

  /// Brings an account store to this version.
  @Loop
  private static func migrate(_ directory: String) async -> Int32 {
    do {
      let administration = try StoreWriter.settings(directory).administration()
      say("migrating")
      _ = try await administration.migrate()
      say("migrated")
      return 0
    } catch {
      complain("\(error)")
    }
  }

  static func record(_ number: Int, size: Int) -> EventRecord {
    EventRecord(
      topic: .accountEvents, key: Array("lane/\(number % 8)".utf8),
      value: Array(repeating: UInt8(ascii: "v"), count: size),
      headers: [EventRecord.Header(name: "ce_id", value: Array("event-\(number)".utf8))])
  }

  private static func write(into file: String, from first: Int) {
    do {
      let database = try Database(file, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
      try database.execute("CREATE TABLE IF NOT EXISTS number (value INTEGER PRIMARY KEY, half TEXT NOT NULL) STRICT")
      let insertion = try database.prepare("INSERT INTO number (value, half) VALUES (?, ?)")
      for number in first... {
        // Two rows that belong together.
        try database.transaction { () throws(SQLiteError) in
          try insertion.run(Int64(number), "first")
          try insertion.run(Int64(-number), "second")
        }
        say("inserted \(number)")
      }
    } catch {
      complain("\(error)")
    }
  }

  /// Eight at a time, so that there are groups; of every three records one is taken out again.
  @Loop
  private static func fill(_ directory: String, from first: Int) async -> Int32 {
    do {
      let spool = try await Spool.open(
        directory: directory, limit: 1 << 30, now: { .now }, registry: MetricsRegistry(),
        logger: Logger(level: .info, format: .text))
      say("opened \(spool.depth)")
      await withTaskGroup { group in
        for lane in 0..<8 {
          group.addTask(executorPreference: Loop.executor) { await fill(spool, lane, from: first) }
        }
      }
    } catch {
      complain("\(error)")
    }
    return 1
  }

  @Loop
  private static func fill(_ spool: Spool, _ lane: Int, from first: Int) async {
    for number in stride(from: first + lane, to: first + 1_000_000, by: 8) {
      do throws(SpoolError) {
        let sequence = try await spool.insert(record(number, size: number % 3000))
        say("inserted \(number)")
        guard number % 3 == 0 else { continue }
        say("removing \(number)")
        await spool.remove(sequence)
        say("removed \(number)")
      } catch {
        complain("\(error)")
      }
    }
  }

  /// Remembers accepted events, and says what was written down.
  @Loop
  private static func remember(_ directory: String, from first: Int) async -> Int32 {
    guard let team = TeamID("A1B2C3D4E5"), let audience = ClientID("com.example.app") else { return 1 }
    let events = AcceptedEvents(
      in: directory, number: 1000, time: .seconds(86_400), now: { .now }, logger: Logger(level: .info, format: .text))
    for batch in stride(from: first, to: .max, by: 7) {
      for number in batch..<batch + 7 {
        guard let id = EventID("event-\(number)") else { return 1 }
        events.insert(AcceptedEvents.Mark(of: id, on: .accountEvents, team: team, audience: audience))
      }
      await events.flush()
      say("written \(batch + 6)")
    }
    return 1
  }

  static func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    if unsafe Glibc.write(STDOUT_FILENO, bytes, bytes.count) != bytes.count { _exit(1) }
  }

  static func complain(_ line: String) -> Never {
    let bytes = Array("\(line)\n".utf8)
    _ = unsafe Glibc.write(STDERR_FILENO, bytes, bytes.count)
    _exit(1)
  }
}
