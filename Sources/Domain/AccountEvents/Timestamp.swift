import Glibc
import Telemetry

/// A moment in milliseconds since 1970, between then and the end of the year 9999.
///
/// The bounds make every moment writable in RFC 3339's form, and keep arithmetic on it from overflowing.
public struct Timestamp: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// Milliseconds since 1970-01-01T00:00:00Z.
  public let milliseconds: Int64

  private static let end: Int64 = 253_402_300_800_000

  /// Nil for a moment before 1970 or after 9999.
  public init?(milliseconds: Int64) {
    guard 0..<Self.end ~= milliseconds else { return nil }
    self.milliseconds = milliseconds
  }

  /// Nil for a moment before 1970 or after 9999.
  public init?(seconds: Int64) {
    guard 0..<Self.end / 1000 ~= seconds else { return nil }
    milliseconds = seconds * 1000
  }

  /// The moment that a text names in RFC 3339's form, as `RFC3339.milliseconds(of:)` reads it; nil where it names none.
  public init?(rfc3339 text: String) {
    guard let milliseconds = RFC3339.milliseconds(of: text) else { return nil }
    self.init(milliseconds: milliseconds)
  }

  private init(clamping milliseconds: Int64) { self.milliseconds = min(max(milliseconds, 0), Self.end - 1) }

  /// What the system's clock says. For programs: whatever lies below them takes the time as a parameter.
  public static var now: Timestamp {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(clamping: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
  }

  /// The moment `duration` later, or the nearest that there is.
  public static func + (time: Timestamp, duration: Duration) -> Timestamp {
    let (seconds, attoseconds) = duration.components
    guard -end / 1000...end / 1000 ~= seconds else { return Timestamp(clamping: seconds < 0 ? 0 : end) }
    return Timestamp(clamping: time.milliseconds + seconds * 1000 + attoseconds / 1_000_000_000_000_000)
  }

  /// The moment `duration` earlier, or the nearest that there is.
  public static func - (time: Timestamp, duration: Duration) -> Timestamp { time + (.zero - duration) }

  /// The time that lies between two moments; negative where `later` is the earlier one.
  public static func - (later: Timestamp, earlier: Timestamp) -> Duration {
    .milliseconds(later.milliseconds - earlier.milliseconds)
  }

  /// Whether the first moment comes before the second.
  public static func < (first: Timestamp, second: Timestamp) -> Bool { first.milliseconds < second.milliseconds }

  /// The moment in RFC 3339's form, in UTC: `2022-07-12T09:11:03.012Z`.
  public var description: String { String(decoding: rfc3339, as: UTF8.self) }

  /// The 24 bytes of the description.
  var rfc3339: [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(24)
    RFC3339.append(milliseconds, to: &text)
    return text
  }
}
