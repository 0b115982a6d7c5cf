/// Reads JSON (RFC 8259) from bytes that nobody vouches for, value by value, without building a tree.
///
/// It is stricter than the standard asks where the standard leaves a choice that two readers could make differently:
/// duplicate members are refused, and so are strings that are no Unicode, a byte order mark and anything behind the
/// value. What the caller does not read is skipped, and checked all the same. No input makes it trap.
///
/// After `.unexpectedKind` and `.notAnInteger` the caller may go on, and treat the value as what it is. Every other
/// error says that the text is no JSON: nothing that was read is worth anything. The same holds of any error that leaves
/// an object or an array before its end. Whoever catches it there reads nothing more, and `read` throws it in the end.
///
/// ```swift
/// try JSONReader.read(bytes, limits) { reader throws(JSONError) in
///   try reader.readObject { name, value throws(JSONError) in
///     switch name {
///     case "kid": kid = try value.readString()
///     case "n": modulus = try value.readString()
///     default: break
///     }
///   }
/// }
/// ```
@safe public struct JSONReader: ~Copyable {
  // Points into memory that `read` borrows. A reader is only ever lent to a closure, so it cannot outlive it.
  let bytes: UnsafeRawBufferPointer
  let end: Int
  var position = 0
  private var depth = 0
  private var hasValue = true
  /// Why reading cannot go on.
  private var firstFault: JSONError?
  /// The names of all objects that are open, outermost first.
  var names: [MemberName] = []
  /// The names in `names` that were written with escapes, without them.
  var unescapedNames: [UInt8] = []
  private let limits: JSONLimits

  /// Lends a reader of the one value in `text` to `body`, and refuses what is left over or wrong behind it.
  @inlinable
  public static func read<Value>(
    _ text: RawSpan, _ limits: JSONLimits, _ body: (inout JSONReader) throws(JSONError) -> Value
  ) throws(JSONError) -> Value {
    var value: Value?
    try lend(text, limits) { reader throws(JSONError) in value = try body(&reader) }
    guard let value else { preconditionFailure("the body was not called") }
    return value
  }

  /// `read` without its type parameter: a generic function called from another module looks its types up each time,
  /// which would cost more than the reading of a small text.
  @usableFromInline
  static func lend(
    _ text: RawSpan, _ limits: JSONLimits, _ body: (inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    guard text.byteCount <= limits.bytes else { throw JSONError(.tooLarge, at: limits.bytes) }
    // The detour by Result is for `withUnsafeBytes`, which does not pass typed errors on.
    try unsafe text.withUnsafeBytes { bytes in
      Result { () throws(JSONError) in
        var reader = unsafe JSONReader(bytes: bytes, limits: limits)
        reader.skipWhitespace()
        try body(&reader)
        try reader.skipIfUnread()
        reader.skipWhitespace()
        guard reader.position == bytes.count else { throw JSONError(.trailingBytes, at: reader.position) }
      }
    }.get()
  }

  private init(bytes: UnsafeRawBufferPointer, limits: JSONLimits) {
    unsafe self.bytes = bytes
    end = bytes.count
    self.limits = limits
  }

  /// The offset in the text of the value that comes next.
  public var offset: Int { position }

  /// The kind of the value that comes next, by its first byte.
  public var kind: JSONKind {
    get throws(JSONError) {
      switch current {
      case UInt8(ascii: "{"): .object
      case UInt8(ascii: "["): .array
      case UInt8(ascii: "\""): .string
      case UInt8(ascii: "-"): .number
      case let digit? where UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit: .number
      case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
      case UInt8(ascii: "n"): .null
      default: throw JSONError(.malformed, at: position)
      }
    }
  }

  /// Reads an object: lends the reader to `body` once for each member, with the name and in front of the value.
  public mutating func readObject(
    _ body: (_ name: String, _ value: inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    try begin(.object)
    try walkObject { name, reader throws(JSONError) in try body(reader.text(of: name), &reader) }
  }

  /// Reads an array: lends the reader to `body` once in front of each element.
  public mutating func readArray(
    _ body: (_ element: inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    try begin(.array)
    try walkArray(body)
  }

  /// Reads a string.
  public mutating func readString() throws(JSONError) -> String {
    try begin(.string)
    return text(of: try scanString())
  }

  /// Reads a string, as the bytes of its UTF-8.
  public mutating func readStringBytes() throws(JSONError) -> [UInt8] {
    try begin(.string)
    return utf8(of: try scanString())
  }

  /// Reads an integer that JSON carries exactly: at most 2⁵³ − 1, written without fraction and exponent (RFC 7493 §2.2).
  public mutating func readInteger() throws(JSONError) -> Int64 {
    try begin(.number)
    return try scanInteger()
  }

  /// Reads `true` or `false`.
  public mutating func readBoolean() throws(JSONError) -> Bool {
    try begin(.boolean)
    let isTrue = current == UInt8(ascii: "t")
    try scanWord(isTrue ? "true" : "false")
    return isTrue
  }

  /// Checks the value that comes next, whatever it is, and tells where in the text it stands.
  public mutating func readRaw() throws(JSONError) -> Range<Int> {
    let start = position
    try begin(kind)
    try walkAny()
    return start..<position
  }

  /// Notes that reading cannot go on; every later call throws the first such error.
  mutating func fault(_ code: JSONError.Code, at offset: Int) -> JSONError {
    let error = firstFault ?? JSONError(code, at: offset)
    firstFault = error
    return error
  }

  private mutating func begin(_ expected: JSONKind) throws(JSONError) {
    if let firstFault { throw firstFault }
    precondition(hasValue, "a value is read once")
    guard try kind == expected else { throw JSONError(.unexpectedKind, at: position) }
    hasValue = false
  }

  private mutating func skipIfUnread() throws(JSONError) {
    if let firstFault { throw firstFault }
    guard hasValue else { return }
    hasValue = false
    try walkAny()
  }

  private mutating func walkAny() throws(JSONError) {
    switch try kind {
    case .object: try walkObject { _, _ throws(JSONError) in }
    case .array: try walkArray { _ throws(JSONError) in }
    case .string: _ = try scanString()
    case .number: try scanNumber()
    case .boolean: try scanWord(current == UInt8(ascii: "t") ? "true" : "false")
    case .null: try scanWord("null")
    }
  }

  private mutating func walkObject(
    _ body: (_ name: StringToken, _ value: inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    let outer = names.count
    var seen = SeenNames()
    try enter()
    try walkItems(closing: UInt8(ascii: "}")) { reader throws(JSONError) in
      let name = try reader.scanName(outer, &seen)
      reader.skipWhitespace()
      try reader.expect(UInt8(ascii: ":"))
      reader.skipWhitespace()
      reader.hasValue = true
      try body(name, &reader)
      try reader.skipIfUnread()
    }
    names.removeSubrange(outer...)
  }

  private mutating func walkArray(
    _ body: (_ element: inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    try enter()
    try walkItems(closing: UInt8(ascii: "]")) { reader throws(JSONError) in
      reader.hasValue = true
      try body(&reader)
      try reader.skipIfUnread()
    }
  }

  private mutating func enter() throws(JSONError) {
    guard depth < limits.depth else { throw fault(.tooDeep, at: position) }
    depth += 1
    position += 1
    skipWhitespace()
  }

  /// Calls `item` in front of each item of the container that was entered, and leaves the container.
  ///
  /// Inlined, it makes Swift 6.3.1's optimizer crash on `walkArray` (OwnershipModelEliminator).
  @inline(never)
  private mutating func walkItems(
    closing: UInt8, _ item: (inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    if current != closing {
      while true {
        do throws(JSONError) { try item(&self) } catch { throw fault(error.code, at: error.offset) }
        skipWhitespace()
        guard current == UInt8(ascii: ",") else { break }
        position += 1
        skipWhitespace()
      }
    }
    try expect(closing)
    depth -= 1
  }

  /// Reads a name and refuses it where the object, whose names begin at `first`, has it already.
  private mutating func scanName(_ first: Int, _ seen: inout SeenNames) throws(JSONError) -> StringToken {
    let start = position
    guard current == UInt8(ascii: "\"") else { throw fault(.malformed, at: position) }
    let token = try scanString()
    let name = remember(token)
    if isKnown(name, since: first, &seen) { throw fault(.duplicateMember, at: start) }
    guard names.count - first < limits.members else { throw fault(.tooManyMembers, at: start) }
    if names.isEmpty { names.reserveCapacity(16) }
    names.append(name)
    return token
  }
}
