/// Why a text is not the JSON that was expected, and where.
public struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong; the raw value is a metric label and a log key.
  public enum Code: String, Sendable, CaseIterable {
    /// More bytes than the limit.
    case tooLarge = "too-large"
    /// Objects and arrays nested deeper than the limit.
    case tooDeep = "too-deep"
    /// An object with more members than the limit.
    case tooManyMembers = "too-many-members"
    /// A byte that the grammar of RFC 8259 does not allow in its place, or the end of the text.
    case malformed
    /// A string whose bytes are not UTF-8, or that escapes half of a surrogate pair.
    case invalidText = "invalid-text"
    /// One name twice in one object, however it is escaped.
    case duplicateMember = "duplicate-member"
    /// Something behind the value.
    case trailingBytes = "trailing-bytes"
    /// Well-formed, but another kind of value than the reader asked for.
    case unexpectedKind = "unexpected-kind"
    /// A number that is no integer, or one that JSON does not carry exactly (beyond 2⁵³ − 1).
    case notAnInteger = "not-an-integer"
  }

  /// What is wrong.
  public let code: Code
  /// The offset of the byte at which it was noticed.
  public let offset: Int

  /// An error noticed at the given byte.
  public init(_ code: Code, at offset: Int) { (self.code, self.offset) = (code, offset) }

  /// The code and the offset; never anything of the text itself.
  public var description: String { "\(code.rawValue) at byte \(offset)" }
}
