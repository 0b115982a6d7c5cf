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

  /// Appends an array, as PostgreSQL sends one: how many dimensions, whether NULL is in it, the type of its elements; for
  /// each dimension how many there are and the first one's index; each element behind its length.
  mutating func append(_ elements: Parameters, of type: ParameterType) {
    let start = bytes.count
    bytes.reserveCapacity(start + 20 + elements.bytes.count + 4 * elements.lengths.count)
    appendWord(elements.lengths.isEmpty ? 0 : 1)
    appendWord(elements.lengths.contains(-1) ? 1 : 0)
    appendWord(Int32(bitPattern: type.rawValue))
    if !elements.lengths.isEmpty {
      appendWord(Int32(clamping: elements.lengths.count))
      appendWord(1)
    }
    var next = 0
    for length in elements.lengths {
      appendWord(length)
      guard length > 0 else { continue }
      bytes.append(contentsOf: elements.bytes[next..<next + Int(length)])
      next += Int(length)
    }
    lengths.append(Int32(clamping: bytes.count - start))
  }

  private mutating func appendWord(_ word: Int32) {
    unsafe Swift.withUnsafeBytes(of: word.bigEndian) { unsafe bytes.append(contentsOf: $0) }
  }
}
