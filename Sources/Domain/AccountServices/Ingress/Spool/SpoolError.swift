/// Why the spool cannot be opened, written or read.
package struct SpoolError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What happened, from a closed list: the label of a metric and the key of a log line.
  package enum Code: String, Sendable, CaseIterable {
    /// It holds as much as it may, or the disk is full.
    case full
    /// Another process has it.
    case inUse = "in-use"
    /// The directory cannot be used, or others can write to it.
    case unusableDirectory = "unusable-directory"
    /// There is no spool in the directory.
    case missing
    /// The file is damaged.
    case damaged
    /// The file is a database, but no spool.
    case notASpool = "not-a-spool"
    /// A later version of the program wrote the file.
    case newerVersion = "newer-version"
    /// The operating system or SQLite failed.
    case failed
    /// The disk has said nothing for long.
    case hanging
    /// It was closed.
    case closed
  }

  /// What happened.
  package let code: Code
  /// Where the spool is.
  package let directory: String
  /// More about it; no personal data.
  package let detail: String

  /// An error of the spool in `directory`.
  package init(_ code: Code, _ directory: String, _ detail: String) {
    (self.code, self.directory, self.detail) = (code, directory, detail)
  }

  /// Names the directory and what is wrong.
  package var description: String { "the spool in \(directory): \(detail)" }
}
