package import AccountEvents
import AccountStore

/// Topics onto which nothing is replayed.
package enum ReplayTarget {
  /// Why records of a topic are not replayed onto another; nil where nothing speaks against it.
  ///
  /// Onto their own topic they would follow what came after them, and be read again by everybody. Onto the others of ours
  /// nobody but the programs themselves writes: a consumer is given records again on its own topic alone.
  package static func refusal(of target: String, for source: Topic) -> String? {
    if target == source.name { return "the records are from there: they would be behind what came after them" }
    if TopicPlan.all().contains(where: { $0.topic.name == target }) || isOfConsumer(target) {
      return "a topic of the programs, which believe what stands there; a consumer is given records by --to-consumer"
    }
    return nil
  }

  /// Whether it is a topic of a consumer's, be that one of ours or not.
  private static func isOfConsumer(_ topic: String) -> Bool {
    let parts = topic.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count > 2, let consumer = ConsumerName(String(parts[2])) else { return false }
    return [Topic.retries(of: consumer), .deadLetters(of: consumer)].contains { $0.name == topic }
  }
}
