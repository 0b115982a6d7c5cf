import JSON

/// Why a record's value is no event that this version understands.
public struct EventDecodingError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The closed list of reasons; the raw value is a metric label and a log key.
  public enum Code: String, Sendable, CaseIterable {
    /// No JSON object, or one that is larger or deeper than any event.
    case malformedJSON = "malformed-json"
    /// A member is missing, or its value is not of its form.
    case malformedMember = "malformed-member"
    /// A well-formed event of a type that came with a later version.
    case unknownType = "unknown-type"
  }

  /// Which reason it is.
  public let code: Code
  /// The member that is meant, or what the JSON reader said; never anything of the value itself.
  public let detail: String

  /// The code and the detail.
  public var description: String { "\(code.rawValue): \(detail)" }
}

extension EventDecodingError {
  /// What the reader stopped at: a member of another kind, or something that is no JSON.
  init(reading error: JSONError) {
    let isMember = error.code == .unexpectedKind || error.code == .notAnInteger
    self.init(code: isMember ? .malformedMember : .malformedJSON, detail: error.description)
  }
}
