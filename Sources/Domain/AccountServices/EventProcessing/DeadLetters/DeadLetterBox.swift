package import AccountEvents
package import AccountStore
package import EventLoop
package import Kafka

/// A consumer's dead letters on Kafka, for an operator: read to their end, and acted upon.
@Loop
package final class DeadLetterBox {
  private let configuration: KafkaConfiguration
  private let consumer: ConsumerName
  private let limit: Duration
  private let log: KafkaLog

  /// The letters of a consumer. `limit` is how long each of reading and writing may take.
  package init(
    _ configuration: KafkaConfiguration, of consumer: ConsumerName, within limit: Duration, log: @escaping KafkaLog
  ) {
    (self.configuration, self.consumer, self.limit, self.log) = (configuration, consumer, limit, log)
  }

  /// What stands on the topic by now.
  package func read() async throws(KafkaError) -> DeadLetters {
    let topic = Topic.deadLetters(of: consumer).name
    let admin = try Admin(configuration, log: log)
    let ends: Result<[Int32: Int64], KafkaError>
    do throws(KafkaError) { ends = .success(try await admin.endOffsets(of: topic, within: limit)) } catch {
      ends = .failure(error)
    }
    await admin.close()
    let reader = try Consumer(configuration, group: nil, log: log)
    let letters: Result<DeadLetters, KafkaError>
    do throws(KafkaError) { letters = .success(try await read(topic, to: try ends.get(), with: reader)) } catch {
      letters = .failure(error)
    }
    await reader.close()
    return try letters.get()
  }

  private func read(
    _ topic: String, to ends: [Int32: Int64], with reader: Consumer
  ) async throws(KafkaError) -> DeadLetters {
    var letters = DeadLetters(of: consumer)
    var left = ends.filter { $0.value > 0 }
    try reader.assign(left.keys.map { PartitionStart(topic: topic, partition: $0, at: .beginning) })
    let alarm = Deadline()
    alarm.onPass { Task(executorPreference: Loop.executor) { await reader.close() } }
    alarm.set(.now + limit)
    defer { alarm.invalidate() }
    while !left.isEmpty {
      let some = try await reader.next(upTo: 512)
      guard !some.isEmpty else {
        throw KafkaError(.timedOut, detail: "\(topic) could not be read to its end within \(limit)")
      }
      for record in some {
        let partition = record.position.partition
        if let end = left[partition], record.position.offset + 1 >= end { left[partition] = nil }
        letters.read(record)
      }
    }
    return letters
  }

  /// Reads what letters say, one after the other: each as it stands; of one that only says where the record stands, that
  /// record. Nil where it is not there any more.
  package func contents(
    of some: [DeadLetters.Letter],
    each body: @Loop (DeadLetters.Letter, ConsumedRecord?) async throws(KafkaError) -> Void
  ) async throws(KafkaError) {
    let reader = try Consumer(configuration, group: nil, log: log)
    let result: Result<Void, KafkaError>
    do throws(KafkaError) {
      for letter in some { try await body(letter, try await content(of: letter, with: reader)) }
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await reader.close()
    try result.get()
  }

  private func content(
    of letter: DeadLetters.Letter, with reader: Consumer
  ) async throws(KafkaError) -> ConsumedRecord? {
    if letter.isShortened { return try await original(of: letter, with: reader) }
    let topic = Topic.deadLetters(of: consumer).name
    let record = try await record(topic, letter.place.partition, letter.place.offset, with: reader)
    return record?.key == letter.key ? record : nil
  }

  private func original(
    of letter: DeadLetters.Letter, with reader: Consumer
  ) async throws(KafkaError) -> ConsumedRecord? {
    guard let origin = letter.origin else { return nil }
    let admin = try Admin(configuration, log: log)
    let firsts: Result<[Int32: Int64], KafkaError>
    do throws(KafkaError) {
      firsts = .success(try await admin.offsets(of: origin.topic, since: 0, within: limit))
    } catch {
      firsts = .failure(error)
    }
    await admin.close()
    guard let first = try firsts.get()[origin.partition], first <= origin.offset else { return nil }
    let record = try await record(origin.topic, origin.partition, origin.offset, with: reader)
    return letter.account == nil || record?.key == letter.account ? record : nil
  }

  /// The record at a place; nil where it is not there any more, and there are later ones.
  private func record(
    _ topic: String, _ partition: Int32, _ offset: Int64, with reader: Consumer
  ) async throws(KafkaError) -> ConsumedRecord? {
    try reader.assign([PartitionStart(topic: topic, partition: partition, at: .offset(offset))])
    let alarm = Deadline()
    alarm.onPass { Task(executorPreference: Loop.executor) { await reader.close() } }
    alarm.set(.now + limit)
    defer { alarm.invalidate() }
    guard let record = try await reader.next(upTo: 1).first else {
      throw KafkaError(.timedOut, detail: "\(topic)/\(partition)/\(offset) could not be read within \(limit)")
    }
    return record.position.offset == offset ? record : nil
  }

  /// Gives letters to their consumer again, in their order, and notes that of each; returns after the last one. Where it
  /// throws, those before are done.
  package func retry(
    _ some: [DeadLetters.Letter], by person: String, at time: Timestamp,
    each done: (DeadLetters.Letter) -> Void
  ) async throws(KafkaError) {
    let letters = DeadLetters(of: consumer)
    try await write { producer throws(KafkaError) in
      try await contents(of: some) { letter, content throws(KafkaError) in
        guard let content else {
          throw KafkaError(.offsetOutOfRange, detail: letter.wordsOfLoss)
        }
        // The note comes second: a letter that is retried twice has one effect, one that is not would have none.
        _ = try await producer.send(letters.retry(letter, content))
        _ = try await producer.send(letters.mark(letter, .retried, by: person, at: time))
        done(letter)
      }
    }
  }

  /// Notes of letters that nothing follows from them, and why.
  package func discard(
    _ some: [DeadLetters.Letter], reason: String, by person: String, at time: Timestamp,
    each done: (DeadLetters.Letter) -> Void
  ) async throws(KafkaError) {
    let letters = DeadLetters(of: consumer)
    try await write { producer throws(KafkaError) in
      for letter in some {
        _ = try await producer.send(letters.mark(letter, .discarded(reason: reason), by: person, at: time))
        done(letter)
      }
    }
  }

  private func write(_ body: @Loop (Producer) async throws(KafkaError) -> Void) async throws(KafkaError) {
    let producer = try Producer(configuration, deadline: limit, log: log)
    let result: Result<Void, KafkaError>
    do throws(KafkaError) { result = .success(try await body(producer)) } catch { result = .failure(error) }
    _ = await producer.close(within: limit)
    try result.get()
  }
}

extension DeadLetters.Letter {
  /// What is to be said where there is nothing to be read.
  package var wordsOfLoss: String {
    guard isShortened, let origin else {
      return "\(place) is not there any more: somebody has decided about it meanwhile"
    }
    return "\(place) only says where its record stood, and that is not there any more: \(origin)"
  }
}
