/// Why an event could not be processed. Any other error that a consumer throws counts as transient, as `unexpected`.
public struct ConsumerFailure: Error, Sendable, Equatable, CustomStringConvertible {
  enum Consequence: Sendable, Equatable {
    case transient, waiting, permanent
  }

  /// Why, in a word of a closed list such as `apple-unavailable`: the label of the metrics of what is tried again.
  public let cause: String
  let consequence: Consequence
  let retryAfter: Duration
  let detail: String
  /// Whether it is agreed that this takes its time: however long, the log has no error of it.
  let isExpected: Bool

  /// It may succeed later: the attempt is counted, and the event tried again with growing pauses, not before `retryAfter`.
  /// The account's later events wait. `detail` is for the log, without personal data.
  public static func transient(
    _ cause: String, retryAfter: Duration = .zero, detail: String = ""
  ) -> ConsumerFailure {
    ConsumerFailure(cause: cause, consequence: .transient, retryAfter: retryAfter, detail: detail, isExpected: false)
  }

  /// It is too early: the event is tried again after the pause, and no attempt is counted.
  public static func waiting(_ cause: String, for pause: Duration, detail: String = "") -> ConsumerFailure {
    ConsumerFailure(cause: cause, consequence: .waiting, retryAfter: pause, detail: detail, isExpected: false)
  }

  /// As `waiting`, for as long as was agreed with whoever is at work: the log has no error where it takes hours.
  package static func expected(_ cause: String, for pause: Duration, detail: String = "") -> ConsumerFailure {
    ConsumerFailure(cause: cause, consequence: .waiting, retryAfter: pause, detail: detail, isExpected: true)
  }

  /// It never succeeds: the event goes to the consumer's dead letters, for a person to look at.
  public static func permanent(_ cause: String, detail: String = "") -> ConsumerFailure {
    ConsumerFailure(cause: cause, consequence: .permanent, retryAfter: .zero, detail: detail, isExpected: false)
  }

  /// The cause, and more about it.
  public var description: String { detail.isEmpty ? cause : "\(cause): \(detail)" }
}
