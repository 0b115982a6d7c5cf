/// The kinds of value that JSON has.
public enum JSONKind: Sendable, Hashable {
  /// Members, each with a name.
  case object
  /// Values in an order.
  case array
  /// Text.
  case string
  /// A number.
  case number
  /// `true` or `false`.
  case boolean
  /// `null`.
  case null
}
