/// A value in a log line's metadata.
///
/// A literal, or an interpolated string, is one already: `["kafka.partition": 3, "http.peer": "\(address)"]`.
public enum LogValue: Sendable, Hashable {
  /// Text; cut at `Logger.maximumValueSize` bytes, control characters escaped.
  case string(String)
  /// A whole number.
  case integer(Int64)
  /// Any other number. What is not finite is written as text, since JSON has no word for it.
  case number(Double)
  /// Yes or no.
  case boolean(Bool)

  /// A whole number of any width, saturating at the ends of `Int64`.
  public static func integer(_ value: some BinaryInteger) -> LogValue { .integer(Int64(clamping: value)) }

  /// A duration as a number of seconds.
  public static func seconds(_ duration: Duration) -> LogValue {
    let (seconds, attoseconds) = duration.components
    return .number(Double(seconds) + Double(attoseconds) / 1e18)
  }

  /// Whatever describes itself: an address, an error.
  public static func describing(_ value: some CustomStringConvertible) -> LogValue { .string(value.description) }
}

extension LogValue: ExpressibleByStringInterpolation {
  /// Text as it stands in the code.
  public init(stringLiteral value: String) { self = .string(value) }
}

extension LogValue: ExpressibleByIntegerLiteral {
  /// A number as it stands in the code.
  public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension LogValue: ExpressibleByFloatLiteral {
  /// A number as it stands in the code.
  public init(floatLiteral value: Double) { self = .number(value) }
}

extension LogValue: ExpressibleByBooleanLiteral {
  /// A truth value as it stands in the code.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
}
