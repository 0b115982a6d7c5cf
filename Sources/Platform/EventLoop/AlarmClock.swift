/// What time it is, and one alarm: so that whoever waits for hours can be tested in no time.
@Loop
package protocol AlarmClock: AnyObject {
  /// The moment now.
  var now: MonotonicTime { get }

  /// Has `action` called once `time` has come, on the loop; takes the place of what was set before.
  func set(_ time: MonotonicTime, _ action: @escaping @Loop () -> Void)
}

/// The machine's clock and a deadline of the loop.
@Loop
package final class SystemAlarmClock: AlarmClock {
  private let deadline = Deadline()

  /// A clock whose alarm is not set.
  package init() {}

  isolated deinit { deadline.invalidate() }

  package var now: MonotonicTime { .now }

  package func set(_ time: MonotonicTime, _ action: @escaping @Loop () -> Void) {
    deadline.onPass(action)
    deadline.set(time)
  }
}
