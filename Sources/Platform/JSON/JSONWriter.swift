/// An object that is written member by member straight into its bytes: for answers of known shape that are given often, of
/// which nothing is built but the bytes.
///
/// ```swift
/// let bytes = JSONWriter.object { object in
///   object.add("status", "known")
///   object.add("relay") { relay in relay.add("maySend", true) }
/// }
/// ```
///
/// No name may come twice in an object, and none needs an escape; what is nil is left out.
public struct JSONWriter: ~Copyable {
  private var bytes: [UInt8] = []
  /// Whether the object that is under way has no member yet.
  private var isEmpty = true

  private init() { bytes.reserveCapacity(512) }

  /// The object that `body` writes, without white space.
  public static func object(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter()
    writer.write(body)
    return writer.bytes
  }

  /// A text.
  public mutating func add(_ name: StaticString, _ text: String?) {
    guard let text else { return }
    begin(name)
    JSON.append(text, to: &bytes)
  }

  /// An integer.
  public mutating func add(_ name: StaticString, _ number: Int64?) {
    guard let number else { return }
    begin(name)
    JSON.append(number, to: &bytes)
  }

  /// `true` or `false`.
  public mutating func add(_ name: StaticString, _ flag: Bool?) {
    guard let flag else { return }
    begin(name)
    bytes.append(contentsOf: flag ? "true".utf8 : "false".utf8)
  }

  /// A text that `body` appends, which needs no escape.
  public mutating func addPlain(_ name: StaticString, _ body: (inout [UInt8]) -> Void) {
    begin(name)
    bytes.append(UInt8(ascii: "\""))
    body(&bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  /// An object.
  public mutating func add(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
    begin(name)
    write(body)
  }

  /// An array of so many objects; `body` writes each of them, and is told the place of it.
  public mutating func add(_ name: StaticString, count: Int, _ body: (Int, inout JSONWriter) -> Void) {
    begin(name)
    bytes.append(UInt8(ascii: "["))
    for index in 0..<count {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      write { body(index, &$0) }
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private mutating func write(_ body: (inout JSONWriter) -> Void) {
    bytes.append(UInt8(ascii: "{"))
    isEmpty = true
    body(&self)
    isEmpty = false
    bytes.append(UInt8(ascii: "}"))
  }

  private mutating func begin(_ name: StaticString) {
    if !isEmpty { bytes.append(UInt8(ascii: ",")) }
    isEmpty = false
    bytes.append(UInt8(ascii: "\""))
    unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
  }
}
