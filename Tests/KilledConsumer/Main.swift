import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Glibc
import Kafka
import Telemetry

/// A consumer that kills its own process at a step, so that a test can begin it anew and look what became of everything.
///
///     killed-consumer DIRECTORY STEP ROLE        kills itself at that step; 0: never
///
/// It processes the events of its role, and ends when all of them are done: with 0, and the number of its steps.
@main
struct KilledConsumer {
  static func main() {
    let words = CommandLine.arguments
    guard words.count == 4, let step = Int(words[2]), let role = Role(rawValue: words[3]) else { exit(2) }
    exit(Loop.run { await run(role, in: words[1], until: step) })
  }

  @Loop
  private static func run(_ role: Role, in directory: String, until last: Int) async -> Int32 {
    do {
      let steps = Steps(last)
      guard let key = MasterKey([UInt8](repeating: 7, count: 32)) else { return 2 }
      let store = WatchedStore(try await SQLiteAccountStore.open("\(directory)/siwa.db", key))
      store.before = { _ in steps.step() }
      store.after = { _ in steps.step() }
      let source = FileSource(role.events, in: directory, steps)
      let registry = MetricsRegistry()
      let consumer = try role.makeConsumer(in: directory, store, steps, registry)
      let processor = EventProcessor(
        consumer, store: store, log: FileLog(in: directory, steps),
        bounds: ProcessingBounds(
          inFlight: 64, inFlightPerPartition: 32, waiting: 256, waitingPerPartition: 64, concurrency: 4,
          retries: RetryPace(first: .milliseconds(2), longest: .milliseconds(2)), alarmAfter: 3,
          giveUpAfter: .seconds(7 * 86_400), clockTolerance: .seconds(121)),
        agenda: Agenda(SystemAlarmClock()), random: { 1 }, now: { .now }, registry: registry,
        logger: Logger(level: .error, format: .text, sink: LogSink { _ in }))
      let reading = Task(executorPreference: Loop.executor) {
        do throws(KafkaError) { try await processor.read(from: source) } catch { complain("\(error)") }
      }
      while !source.isReadToItsEnd
        || !String(decoding: registry.render(), as: UTF8.self).contains("in_flight{consumer=\"\(consumer.name)\"} 0")
      {
        try await Loop.sleep(for: .milliseconds(1))
      }
      await processor.end(within: .seconds(300))
      reading.cancel()
      await reading.value
      await store.close()
      say("\(steps.count) steps")
      return 0
    } catch {
      complain("\(error)")
    }
  }

  private static func say(_ line: String) { File.write("\(line)\n", to: STDOUT_FILENO) }

  private static func complain(_ line: String) -> Never {
    File.write("\(line)\n", to: STDERR_FILENO)
    _exit(1)
  }
}

/// Counts what the consumer does, and kills the process at one of it.
@Loop
final class Steps {
  private(set) var count = 0
  private let last: Int

  init(_ last: Int) { self.last = last }

  func step() {
    count += 1
    if count == last { kill(getpid(), SIGKILL) }
  }
}

/// Files that survive the process, though not the power.
enum File {
  static func write(_ text: String, to descriptor: CInt) {
    let bytes = Array(text.utf8)
    if unsafe Glibc.write(descriptor, bytes, bytes.count) != bytes.count { _exit(1) }
  }

  static func append(_ text: String, to path: String) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    write(text, to: descriptor)
    close(descriptor)
  }
}
