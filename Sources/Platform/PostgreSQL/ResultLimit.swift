/// How much a query may return.
public struct ResultLimit: Sendable, Hashable {
  /// The most rows.
  public let rows: Int
  /// The most bytes, in the values of all rows together.
  public let bytes: Int

  /// A limit of so many rows and bytes.
  public init(rows: Int, bytes: Int) { (self.rows, self.bytes) = (rows, bytes) }
}
