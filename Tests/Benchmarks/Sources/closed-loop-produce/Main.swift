import EventLoop
import Glibc
import Kafka

/// Senders that each wait for the acknowledgement of one record before they send the next, as connections of the
/// ingress do: what a record costs on its way through the room `Kafka`.
///
///     closed-loop-produce BOOTSTRAP-SERVERS TOPIC SENDERS COUNT [PROPERTY=VALUE]…
///
/// Prints one line: the records a second, and for each record the CPU time of this process in microseconds and how
/// often one of its threads went to sleep.
@main
struct ClosedLoopProduce {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count >= 5, let senders = Int(arguments[3]), let count = Int(arguments[4]) else {
      print("closed-loop-produce BOOTSTRAP-SERVERS TOPIC SENDERS COUNT [PROPERTY=VALUE]…")
      exit(2)
    }
    var properties = [("bootstrap.servers", arguments[1])]
    for property in arguments[5...] {
      guard let equals = property.firstIndex(of: "=") else { continue }
      properties.append((String(property[..<equals]), String(property[property.index(after: equals)...])))
    }
    let load = Load(properties: properties, topic: arguments[2], senders: senders, count: count)
    exit(Loop.run { await load.run() })
  }
}

struct Load: Sendable {
  let properties: [(String, String)]
  let topic: String
  let senders: Int
  let count: Int

  @Loop
  func run() async -> Int32 {
    do {
      let producer = try Producer(KafkaConfiguration(properties: properties), deadline: .seconds(10)) { print($0.text) }
      try await send(count / 10, through: producer)
      let (start, before) = (MonotonicTime.now, Usage.now)
      try await send(count, through: producer)
      let (duration, after) = (MonotonicTime.now - start, Usage.now)
      let rate = Double(count) / (Double(duration.wholeNanoseconds) / 1e9)
      print(
        "\(Int(rate)) records/s", "\((after.microseconds - before.microseconds) / Double(count)) µs",
        "\(Double(after.sleeps - before.sleeps) / Double(count)) sleeps")
      return Int32(await producer.close(within: .seconds(10)))
    } catch {
      print(error)
      return 1
    }
  }

  /// Each sender has its own key, and the headers are those of an account event.
  @Loop
  private func send(_ count: Int, through producer: Producer) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for sender in 0..<senders {
        group.addTask(executorPreference: Loop.executor) {
          try await self.sendOneByOne(count / self.senders, key: UInt8(sender), through: producer)
        }
      }
      try await group.waitForAll()
    }
  }

  @Loop
  private func sendOneByOne(_ count: Int, key: UInt8, through producer: Producer) async throws {
    for _ in 0..<count {
      let headers = (0..<11).map { KafkaHeader("ce_header\($0)", Self.header) } + [KafkaHeader("apple-jws", Self.jws)]
      let record = KafkaRecord(
        topic: topic, key: Array(repeating: key, count: 55), value: Array(repeating: 65, count: 200), headers: headers)
      _ = try await producer.send(record)
    }
  }

  private static let header = Array("com.apple.siwa.account-delete.v1".utf8)
  private static let jws = [UInt8](repeating: 65, count: 1100)
}

struct Usage {
  let microseconds: Double
  let sleeps: Int

  static var now: Usage {
    var usage = rusage()
    unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    let (user, system) = (usage.ru_utime, usage.ru_stime)
    return Usage(
      microseconds: Double(user.tv_sec + system.tv_sec) * 1e6 + Double(user.tv_usec + system.tv_usec),
      sleeps: usage.ru_nvcsw)
  }
}
