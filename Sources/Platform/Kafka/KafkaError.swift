/// What went wrong with Kafka, and what that means for whoever asked.
public struct KafkaError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What happened, from a closed list: the label of a metric and the key of a log line.
  public let code: Code
  /// What the caller may conclude from it.
  public let consequence: Consequence
  /// librdkafka's words, or ours. Never a secret, a key or a value of a record.
  public let detail: String

  /// What happened.
  public enum Code: String, Sendable, CaseIterable {
    /// The configuration is malformed, unknown, or contradicts what this room depends on.
    case invalidConfiguration
    /// The producer, the consumer or the admin was closed.
    case closed
    /// As many records wait already as may wait.
    case queueFull
    /// No answer within the deadline: what was asked for may have happened.
    case timedOut
    /// No broker can be reached, or the one that could answer is not there now.
    case brokerUnavailable
    /// Fewer replicas are in sync than the topic wants.
    case notEnoughReplicas
    /// The topic, or the partition, is not known (yet).
    case unknownTopic
    /// A topic of that name is there already.
    case topicExists
    /// The record is larger than the producer or the topic takes.
    case recordTooLarge
    /// The broker does not take this record, or this request, and never will.
    case refused
    /// The credentials were not accepted, or TLS could not be agreed on.
    case authenticationFailed
    /// The credentials do not allow this.
    case notAuthorized
    /// The broker does not know this kind of request.
    case unsupported
    /// The offset lies outside of what the partition holds.
    case offsetOutOfRange
    /// The group moves its partitions at the moment: to be asked again.
    case groupMoving
    /// The partition is not this member's, or the member was put out of its group.
    case groupChanged
    /// The member did not ask for `max.poll.interval.ms`, and was put out of its group. It comes back when it asks.
    case askedTooLate
    /// Another client runs under this one's name in the group: one of the two has to go.
    case fenced
    /// The group has members, or the offset is one of theirs: only an empty group can be changed from outside.
    case groupInUse
    /// The client must not go on: it has to be closed and made anew.
    case fatal
    /// Nothing of the above; `detail` says more.
    case other
  }

  /// What the caller may conclude.
  public enum Consequence: String, Sendable, CaseIterable {
    /// It did not happen, and may succeed later.
    case retriable
    /// It may or may not have happened; asking again may make it happen twice.
    case uncertain
    /// This client can do nothing any more. What was under way may or may not have happened.
    case fatal
    /// It did not happen, and never will in this form.
    case permanent
  }

  /// An error with its usual consequence, or another one.
  package init(_ code: Code, _ consequence: Consequence? = nil, detail: String) {
    self.code = code
    self.consequence = consequence ?? code.usualConsequence
    self.detail = detail
  }

  /// Whether it did not happen and may succeed later.
  public var isRetriable: Bool { consequence == .retriable }

  /// Whether it may or may not have happened.
  public var isUncertain: Bool { consequence == .uncertain }

  /// Whether the client has to be closed and made anew.
  public var isFatal: Bool { consequence == .fatal }

  /// The code and what librdkafka said.
  public var description: String { "\(code.rawValue): \(detail)" }
}

extension KafkaError.Code {
  var usualConsequence: KafkaError.Consequence {
    switch self {
    case .timedOut: .uncertain
    case .fatal, .closed, .fenced: .fatal
    case .queueFull, .brokerUnavailable, .notEnoughReplicas, .unknownTopic, .authenticationFailed, .notAuthorized,
      .groupMoving, .groupChanged, .askedTooLate, .groupInUse, .other:
      .retriable
    case .invalidConfiguration, .topicExists, .recordTooLarge, .refused, .unsupported, .offsetOutOfRange:
      .permanent
    }
  }
}
