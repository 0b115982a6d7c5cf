/// Why a file of records cannot be written or read.
package struct RecordFileError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The file.
  package let path: String
  /// The line, counted from 1; nil where it is not about one.
  package let line: Int?
  /// What is wrong: nothing of what the file says.
  package let reason: String

  init(_ path: String, line: Int? = nil, _ reason: String) {
    (self.path, self.line, self.reason) = (path, line, reason)
  }

  /// Names the file, the line and what is wrong.
  package var description: String { "\(path): \(line.map { "line \($0): " } ?? "")\(reason)" }
}
