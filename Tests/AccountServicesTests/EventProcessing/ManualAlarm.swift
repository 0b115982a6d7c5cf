import AppleID
import EventLoop

/// An alarm clock whose time passes when a test says so.
@Loop
final class ManualAlarm: AlarmClock {
  private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
  private var alarm: (time: MonotonicTime, action: @Loop () -> Void)?
  private var timesSet = 0
  private var timesSeen = 0
  private var observer: CheckedContinuation<Void, Never>?

  /// How long until the alarm goes off.
  var left: Duration? { alarm.map { $0.time - now } }

  func set(_ time: MonotonicTime, _ action: @escaping @Loop () -> Void) {
    alarm = (time, action)
    timesSet += 1
    observer?.resume()
    observer = nil
  }

  /// Waits until the alarm has been set once more: whoever uses it has nothing left to do.
  func untilSet() async {
    await withCheckedContinuation { waiter in
      if timesSet > timesSeen { return waiter.resume() }
      observer = waiter
    }
    timesSeen += 1
  }

  /// Lets time pass; sounds the alarm if it is due then.
  func advance(by duration: Duration) {
    now = now + duration
    guard let alarm, alarm.time <= now else { return }
    self.alarm = nil
    alarm.action()
  }
}
