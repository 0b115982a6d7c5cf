package import AccountEvents

/// Events of our own that say of an account what happened to another one of the same person.
package enum RelativeEvent {
  /// Which account is told of: the one that another has become when an app changed teams, or the one that it was before.
  package enum Direction: String, Sendable {
    /// What an account has become.
    case successor
    /// What an account was before.
    case predecessor
  }

  /// Whether an event is one of these. Such an event is told on in its direction alone.
  package static func isTold(_ id: EventID, _ direction: Direction) -> Bool {
    id.text.hasPrefix("\(direction.rawValue)-")
  }

  /// The event's id, the same whatever it follows from: where an app goes to and fro between two teams, what was said of
  /// an account is not said of it again.
  static func id(
    of kind: AccountEvent.Kind, _ account: AccountID, at time: Timestamp, _ direction: Direction
  ) -> EventID {
    .ofOurOwn(direction.rawValue, Array(kind.name.utf8) + account.bytes + "\(time.milliseconds)".utf8)
  }
}
