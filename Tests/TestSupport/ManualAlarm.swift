package import EventLoop

/// An alarm clock whose time passes when a test says so.
@Loop
package final class ManualAlarm: AlarmClock {
  /// The moment that the test has come to.
  package private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
  private var alarm: (time: MonotonicTime, action: @Loop () -> Void)?
  private var timesSet = 0
  private var timesSeen = 0
  private var observer: CheckedContinuation<Void, Never>?

  /// A clock whose alarm is not set.
  package init() {}

  /// How long until the alarm goes off.
  package var left: Duration? { alarm.map { $0.time - now } }

  package func set(_ time: MonotonicTime, _ action: @escaping @Loop () -> Void) {
    alarm = (time, action)
    timesSet += 1
    observer?.resume()
    observer = nil
  }

  /// Waits until the alarm has been set once more: whoever uses it has nothing left to do.
  package func untilSet() async {
    await withCheckedContinuation { waiter in
      if timesSet > timesSeen { return waiter.resume() }
      observer = waiter
    }
    timesSeen += 1
  }

  /// Lets time pass; sounds the alarm if it is due then.
  package func advance(by duration: Duration) {
    now = now + duration
    guard let alarm, alarm.time <= now else { return }
    self.alarm = nil
    alarm.action()
  }
}
