import AccountEvents
package import Kafka

/// Compacted topics of the operator's, keyed by the account: a tombstone makes Kafka forget what stands there.
///
/// Compaction looks at one partition at a time, and clients of Kafka do not agree on the partition of a key. So each
/// partition gets a tombstone, whoever wrote the record, and however many partitions there were at the time.
package final class Tombstones: ErasureTarget {
  /// What the topics' records have as their key.
  package enum Key: String, Sendable, CaseIterable {
    /// The subject alone.
    case subject = "sub"
    /// Team and subject with a slash between, as on our own topics.
    case account = "team/sub"
  }

  private let topics: [String]
  private let key: Key
  private let producer: RenewableProducer
  /// The partitions of a topic that is compacted: one answer serves all who wait for it.
  private let partitions: Questions<String, [Int32], ErasureFailure>

  /// Targets the topics, all keyed alike, through the program's own clients. The cluster may take as long as `patience` to
  /// describe a topic.
  package init(
    topics: [String], key: Key, producer: RenewableProducer, admin: Admin, patience: Duration = .seconds(10)
  ) {
    (self.topics, self.key, self.producer) = (topics, key, producer)
    partitions = Questions(upTo: 256) { topics in
      var known: [String: Result<[Int32], ErasureFailure>] = [:]
      for topic in Set(topics) { known[topic] = await Self.partitions(of: topic, producer, admin, patience) }
      return topics.map { known[$0] ?? .failure(ErasureFailure(.unavailable, "\($0): not asked for")) }
    }
  }

  /// A topic cannot be asked how much it holds of a key.
  package func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int? { nil }

  /// Puts a tombstone into each partition of each topic; done once all in-sync replicas have them all.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    let key = key == .account ? order.account.key : Array(order.account.subject.text.utf8)
    var places: [String] = []
    for topic in topics {
      let partitions = try await partitions.ask(topic)
      do throws(KafkaError) {
        for position in try await send(key, to: topic, partitions) {
          places.append("\(topic)/\(position.partition)/\(position.offset)")
        }
      } catch {
        throw ErasureFailure(error, topic)
      }
    }
    return ErasureResult(.erased, affected: nil, found: nil, detail: "tombstones: \(places.joined(separator: ", "))")
  }

  /// Asks for each topic, and whether it is compacted.
  package func check() async throws(ErasureFailure) {
    for topic in topics { _ = try await partitions.ask(topic) }
  }

  private func send(
    _ key: [UInt8], to topic: String, _ partitions: [Int32]
  ) async throws(KafkaError) -> [KafkaPosition] {
    let living = try producer.living()
    let tombstones = partitions.map { KafkaRecord(topic: topic, partition: $0, key: key, value: nil) }
    let results = await living.send(tombstones)
    for case .failure(let error) in results { producer.bury(living, after: error) }
    return try results.map { result throws(KafkaError) in try result.get() }
  }

  /// The partitions as the cluster has them now: some may have been added since the last time.
  private static func partitions(
    of topic: String, _ producer: RenewableProducer, _ admin: Admin, _ patience: Duration
  ) async -> Result<[Int32], ErasureFailure> {
    do throws(KafkaError) {
      // The producer asks: it has to know the partitions that it is told to send to.
      let partitions = try await producer.living().describe(topic: topic, within: patience).partitions.map(\.number)
      let policy = try await admin.settings(of: topic, within: patience)["cleanup.policy"]
      guard !partitions.isEmpty else { return .failure(ErasureFailure(.unavailable, "\(topic): no partitions")) }
      // `compact`, `delete` or both.
      guard let policy, policy.split(separator: ",").contains(where: { $0.drop(while: \.isWhitespace) == "compact" })
      else {
        return .failure(
          ErasureFailure(
            .misconfigured,
            "\(topic): a tombstone erases nothing where cleanup.policy is \(policy ?? "not known") and not compact"))
      }
      return .success(partitions)
    } catch {
      return .failure(ErasureFailure(error, topic))
    }
  }
}

extension ErasureFailure {
  /// What Kafka said about an operator's topic.
  fileprivate init(_ error: KafkaError, _ topic: String) {
    switch error.code {
    case .notAuthorized:
      self.init(.misconfigured, "\(topic): Describe, DescribeConfigs and Write are needed: \(error)")
    case .unknownTopic, .authenticationFailed, .unsupported: self.init(.misconfigured, "\(topic): \(error)")
    default: self.init(error.consequence == .permanent ? .refused : .unavailable, "\(topic): \(error)")
    }
  }
}
