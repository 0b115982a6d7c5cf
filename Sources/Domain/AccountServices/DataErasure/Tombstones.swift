package import AccountEvents
package import Kafka

/// Compacted topics of the operator's, keyed by the account: a tombstone makes Kafka forget what stands there.
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
  private let producer: Producer

  /// The topics, all keyed alike. The producer is the program's own.
  package init(topics: [String], key: Key, producer: Producer) {
    (self.topics, self.key, self.producer) = (topics, key, producer)
  }

  /// A topic cannot be asked how much it holds of a key.
  package func count(_ account: Account) async throws(ErasureFailure) -> Int? { nil }

  /// Puts a tombstone onto each topic; done once all in-sync replicas have them all.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    let key = key == .account ? order.account.key : Array(order.account.subject.text.utf8)
    var places: [String] = []
    for topic in topics {
      do throws(KafkaError) {
        let position = try await producer.send(KafkaRecord(topic: topic, key: key, value: nil))
        places.append("\(topic)/\(position.partition)/\(position.offset)")
      } catch {
        throw ErasureFailure(error.isRetriable || error.isUncertain ? .unavailable : .refused, "\(topic): \(error)")
      }
    }
    return ErasureResult(.erased, affected: nil, found: nil, detail: "tombstones: \(places.joined(separator: ", "))")
  }

  /// Asks for each topic.
  package func check() async throws(ErasureFailure) {
    for topic in topics {
      do throws(KafkaError) {
        _ = try await producer.describe(topic: topic, within: .seconds(5))
      } catch {
        throw ErasureFailure(.unavailable, "\(topic): \(error)")
      }
    }
  }
}
