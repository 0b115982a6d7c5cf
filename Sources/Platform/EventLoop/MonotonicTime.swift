import Glibc

/// A moment on this machine's monotonic clock (CLOCK_MONOTONIC), in nanoseconds since an arbitrary start.
///
/// It never jumps when somebody sets the wall clock, so every deadline is kept in it.
public struct MonotonicTime: Sendable, Hashable, Comparable {
  /// Nanoseconds since the clock's start, usually the boot of the machine.
  public var nanoseconds: Int64

  /// A moment that has the given number of nanoseconds on the clock.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Later than every moment that will be reached.
  public static let distantFuture = MonotonicTime(nanoseconds: .max)

  /// Reads the clock (about 20 ns). On the loop, `Loop.now` is the same moment for a whole turn and costs nothing.
  public static var now: MonotonicTime {
    var value = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &value)
    return MonotonicTime(nanoseconds: Int64(value.tv_sec) &* 1_000_000_000 &+ Int64(value.tv_nsec))
  }

  /// Whether `left` comes before `right`.
  public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

  /// The moment that lies `duration` after `time`, saturating at `distantFuture`.
  public static func + (time: Self, duration: Duration) -> Self {
    let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
    return overflow ? .distantFuture : MonotonicTime(nanoseconds: sum)
  }

  /// The time that passes from `right` to `left`.
  public static func - (left: Self, right: Self) -> Duration {
    .nanoseconds(left.nanoseconds.subtractingReportingOverflow(right.nanoseconds).partialValue)
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded towards zero and saturating at the ends of `Int64` (292 years).
  public var wholeNanoseconds: Int64 {
    // A nanosecond is 512 times 1,953,125 attoseconds. Of up to 78 minutes, what is left without the factor 512 fits into 64
    // bits, in which a division costs a tenth.
    if let parts = Int64(exactly: attoseconds >> 9), parts >= 0 { return parts / 1_953_125 }
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, carry) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow || carry ? (seconds < 0 ? .min : .max) : sum
  }
}
