import Foundation

/// What `make test-long` asks for, by the environment.
enum LongTrial {
  /// Whether it is asked for at all.
  static var isAsked: Bool { notifications > 0 }
  /// How many notifications are sent.
  static let notifications = number("NOTIFICATIONS") ?? 0
  /// How many a second.
  static let rate = number("RATE") ?? 1100
  /// How many events each of the consumers' trials has at least, and how many a second.
  static let (consumerEvents, consumerRate) = (number("EVENTS") ?? 100_000, number("EVENT_RATE") ?? 300)
  /// How many users are moved in the trial of a transfer.
  static let transferredUsers = number("TRANSFERRED_USERS") ?? 100_000
  /// How many events each user has.
  static let events = 50

  private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }
}
