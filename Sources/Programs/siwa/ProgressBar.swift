import Configuration
import EventLoop

/// Says on standard error how far something long is: on a terminal a bar with rate and time left, which is drawn over and
/// over; elsewhere a line every ten seconds.
@Loop
final class ProgressBar {
  private static let columns = 79
  private static let pause = (onTerminal: Duration.milliseconds(100), elsewhere: Duration.seconds(10))

  private let what: String
  private let begin = MonotonicTime.now
  private var last: MonotonicTime
  private var isDrawn = false

  /// Nothing is said yet. `what` is counted, in the plural.
  init(_ what: String) {
    self.what = what
    last = begin
  }

  /// Says that so much is done, unless something was said just now; of nobody knows how much where `total` is nil.
  func note(done: Int64, of total: Int64?) {
    let now = MonotonicTime.now
    guard now - last >= (Terminal.isWatched ? Self.pause.onTerminal : Self.pause.elsewhere) else { return }
    last = now
    let words = Self.words(done, of: total, what, after: now - begin)
    guard Terminal.isWatched else { return Terminal.complain(words) }
    isDrawn = true
    guard let total else { return Terminal.overwrite(words, columns: Self.columns) }
    let share = total > 0 ? Double(done) / Double(total) : 1
    let room = max(0, Self.columns - words.count - 4)
    let full = min(room, Int(Double(room) * share))
    let bar = String(repeating: "=", count: full) + String(repeating: " ", count: room - full)
    Terminal.overwrite("[\(bar)]  \(words)", columns: Self.columns)
  }

  /// Takes the bar away: what is said next stands in its place.
  func clear() {
    if isDrawn { Terminal.overwrite("", columns: Self.columns) }
    isDrawn = false
  }

  private static func words(_ done: Int64, of total: Int64?, _ what: String, after time: Duration) -> String {
    let seconds = Double(time.wholeNanoseconds) / 1e9
    let rate = seconds > 0 ? Double(done) / seconds : 0
    guard let total else { return "\(done) \(what)  \(Int64(rate))/s" }
    // Nobody waits for longer than a hundred hours.
    let left = rate > 0 ? ", \(clock(Int64(min(Double(max(0, total - done)) / rate, 359_999)))) left" : ""
    return "\(percent(done, of: total))%  \(done) of \(total) \(what)  \(Int64(rate))/s\(left)"
  }

  private static func percent(_ done: Int64, of total: Int64) -> Int64 {
    total > 0 ? Int64(Double(done) / Double(total) * 100) : 100
  }

  /// `1:02:03`, `2:03`.
  private static func clock(_ seconds: Int64) -> String {
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
    return hours > 0 ? "\(hours):\(two(minutes)):\(two(seconds % 60))" : "\(minutes):\(two(seconds % 60))"
  }
}
