/// The values that a statement is executed with, in the form in which they are sent.
public struct Parameters: Sendable {
  /// All values, one behind the other.
  private(set) var bytes: [UInt8] = []
  /// How long each is; -1 for NULL.
  private(set) var lengths: [Int32] = []

  /// Appends an integer.
  public mutating func append(_ value: Int64) {
    unsafe Swift.withUnsafeBytes(of: value.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    lengths.append(8)
  }

  /// Appends a text.
  public mutating func append(_ value: String) {
    let start = bytes.count
    bytes.append(contentsOf: value.utf8)
    lengths.append(Int32(clamping: bytes.count - start))
  }

  /// Appends bytes.
  public mutating func append(_ value: [UInt8]) {
    bytes.append(contentsOf: value)
    lengths.append(Int32(clamping: value.count))
  }

  /// Appends true or false.
  public mutating func append(_ value: Bool) {
    bytes.append(value ? 1 : 0)
    lengths.append(1)
  }

  /// Appends NULL.
  public mutating func appendNull() { lengths.append(-1) }
}
