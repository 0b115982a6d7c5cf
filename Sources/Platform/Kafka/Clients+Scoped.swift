import EventLoop

extension Admin {
  /// Runs `body` with an admin that is closed afterwards.
  public static func run<Value>(
    _ configuration: KafkaConfiguration, log: @escaping KafkaLog,
    _ body: @Loop (Admin) async throws(KafkaError) -> Value
  ) async throws(KafkaError) -> Value {
    let admin = try Admin(configuration, log: log)
    let result: Result<Value, KafkaError>
    do throws(KafkaError) { result = .success(try await body(admin)) } catch { result = .failure(error) }
    await admin.close()
    return try result.get()
  }
}

extension Consumer {
  /// Runs `body` with a reader of partitions, in no group, that is closed afterwards.
  public static func run<Value>(
    _ configuration: KafkaConfiguration, log: @escaping KafkaLog,
    _ body: @Loop (Consumer) async throws(KafkaError) -> Value
  ) async throws(KafkaError) -> Value {
    let reader = try Consumer(configuration, group: nil, log: log)
    let result: Result<Value, KafkaError>
    do throws(KafkaError) { result = .success(try await body(reader)) } catch { result = .failure(error) }
    await reader.close()
    return try result.get()
  }
}

extension Producer {
  /// Runs `body` with a producer that is closed afterwards; `deadline` is its own.
  public static func run<Value>(
    _ configuration: KafkaConfiguration, deadline: Duration, log: @escaping KafkaLog,
    _ body: @Loop (Producer) async throws(KafkaError) -> Value
  ) async throws(KafkaError) -> Value {
    let producer = try Producer(configuration, deadline: deadline, log: log)
    let result: Result<Value, KafkaError>
    do throws(KafkaError) { result = .success(try await body(producer)) } catch { result = .failure(error) }
    await producer.close(within: deadline)
    return try result.get()
  }

  /// Sends the records one after the other, and returns what became of each, in their order, once that is known of all.
  public func send(_ records: [KafkaRecord]) async -> [Result<KafkaPosition, KafkaError>] {
    guard !records.isEmpty else { return [] }
    return await withCheckedContinuation { continuation in
      let reports = Reports(records.count) { continuation.resume(returning: $0) }
      for (index, record) in records.enumerated() { send(record) { reports.note($0, at: index) } }
    }
  }
}

/// What became of records that were sent together.
@Loop
private final class Reports {
  private var results: [Result<KafkaPosition, KafkaError>?]
  private var missing: Int
  private let done: ([Result<KafkaPosition, KafkaError>]) -> Void

  init(_ count: Int, then done: @escaping ([Result<KafkaPosition, KafkaError>]) -> Void) {
    (results, missing, self.done) = (Array(repeating: nil, count: count), count, done)
  }

  func note(_ result: Result<KafkaPosition, KafkaError>, at index: Int) {
    results[index] = result
    missing -= 1
    if missing == 0 { done(results.compactMap { $0 }) }
  }
}
