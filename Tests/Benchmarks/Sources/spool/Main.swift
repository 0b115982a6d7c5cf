import AccountEvents
import AccountServices
import EventLoop
import Glibc
import Telemetry

/// What a record costs that goes through the spool: connections of the ingress that each wait until it is synced, then
/// a drain that takes out one record after another.
///
///     spool DIRECTORY SENDERS COUNT BYTES
///
/// Prints, for writing and for taking out: the records a second, for each record the CPU time of this process in
/// microseconds, and the records of a transaction; then what the files take of the records' bytes.
@main
struct SpoolBenchmark {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let senders = Int(arguments[2]), let count = Int(arguments[3]),
      let size = Int(arguments[4])
    else {
      print("spool DIRECTORY SENDERS COUNT BYTES")
      exit(2)
    }
    let load = Load(directory: arguments[1], senders: senders, count: count, size: size)
    exit(Loop.run { await load.run() })
  }
}

struct Load: Sendable {
  let directory: String
  let senders: Int
  let count: Int
  let size: Int

  @Loop
  func run() async -> Int32 {
    do {
      let registry = MetricsRegistry()
      let spool = try await Spool.open(
        directory: directory, limit: 1 << 40, now: { .now }, registry: registry,
        logger: Logger(level: .info, format: .text))
      try await measure("written  ", registry) { try await fill(spool) }
      let (bytes, files) = (Double(spool.bytes), Double(fileSize("spool.sqlite") + fileSize("spool.sqlite-wal")))
      print("files     \(files / bytes) of the records' bytes")
      try await measure("taken out", registry) { try await drain(spool) }
      let start = MonotonicTime.now
      await spool.close()
      print("closed in \(MonotonicTime.now - start), \(fileSize("spool.sqlite")) bytes left")
      return 0
    } catch {
      print(error)
      return 1
    }
  }

  @Loop
  private func measure(_ what: String, _ registry: MetricsRegistry, _ body: @Loop () async throws -> Void) async throws
  {
    let (start, before, commits) = (MonotonicTime.now, cpuTime(), commits(registry))
    try await body()
    let seconds = (MonotonicTime.now - start) / .seconds(1)
    let each = { (amount: Double) in Double(Int(amount * 10 / Double(count))) / 10 }
    print(
      what, "\(Int(Double(count) / seconds)) records/s", "\(each(cpuTime() - before)) µs",
      "\(Double(count) / (self.commits(registry) - commits)) a transaction")
  }

  @Loop
  private func fill(_ spool: Spool) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for sender in 0..<senders {
        group.addTask(executorPreference: Loop.executor) { try await send(sender, to: spool) }
      }
      try await group.waitForAll()
    }
  }

  @Loop
  private func send(_ sender: Int, to spool: Spool) async throws {
    let record = EventRecord(
      topic: .accountEvents, key: Array("A1B2C3D4E5/\(sender)".utf8),
      value: Array(repeating: UInt8(ascii: "v"), count: 300),
      headers: [EventRecord.Header(name: "apple-jws", value: Array(repeating: UInt8(ascii: "j"), count: size - 300))])
    for _ in 0..<count / senders { _ = try await spool.insert(record) }
  }

  /// As the drain does it: many accounts at the same time, the oldest first.
  @Loop
  private func drain(_ spool: Spool) async throws {
    while true {
      let records = try await spool.read(after: 0, limit: senders)
      if records.isEmpty { return }
      await withTaskGroup { group in
        for record in records {
          group.addTask(executorPreference: Loop.executor) { await spool.remove(record.sequence) }
        }
      }
    }
  }

  private func commits(_ registry: MetricsRegistry) -> Double {
    let lines = String(decoding: registry.render(), as: UTF8.self).split(separator: "\n")
    let line = lines.first { $0.hasPrefix("siwa_spool_commits_total ") }
    return line?.split(separator: " ").last.flatMap { Double($0) } ?? 0
  }

  private func fileSize(_ name: String) -> Int {
    var status = stat()
    return unsafe stat("\(directory)/\(name)", &status) == 0 ? Int(status.st_size) : 0
  }

  /// In microseconds.
  private func cpuTime() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
  }
}
