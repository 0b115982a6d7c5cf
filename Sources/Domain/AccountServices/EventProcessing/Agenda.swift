package import EventLoop

/// What is to happen at which time, on one alarm clock.
@Loop
package final class Agenda {
  private let alarm: any AlarmClock
  /// The latest first, so that the next one is taken from the end; of one time the last one asked for.
  private var items: [(time: MonotonicTime, action: @Loop () -> Void)] = []

  /// An empty agenda. Nothing else may use the alarm.
  package init(_ alarm: any AlarmClock) { self.alarm = alarm }

  /// The time now.
  package var now: MonotonicTime { alarm.now }

  /// Calls `action` on the loop once `pause` has passed.
  package func after(_ pause: Duration, _ action: @escaping @Loop () -> Void) {
    let time = alarm.now + pause
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      if items[middle].time > time { low = middle + 1 } else { high = middle }
    }
    items.insert((time, action), at: low)
    if low == items.count - 1 { setAlarm() }
  }

  /// Suspends for `pause`, whatever happens.
  package func wait(_ pause: Duration) async {
    await withCheckedContinuation { waiting in after(pause) { waiting.resume() } }
  }

  private func setAlarm() {
    guard let next = items.last else { return }
    alarm.set(next.time) { [weak self] in self?.pass() }
  }

  private func pass() {
    var due: [@Loop () -> Void] = []
    while let next = items.last, next.time <= alarm.now {
      due.append(next.action)
      items.removeLast()
    }
    for action in due { action() }
    setAlarm()
  }
}
