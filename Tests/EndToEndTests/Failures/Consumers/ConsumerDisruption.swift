/// One way in which things break around the consumers. The raw value is its row in the table of docs/reliability.md.
enum ConsumerDisruption: String, CaseIterable {
  case oneKilled = "a member of each group killed (SIGKILL), started again"
  case allKilled = "all members killed, started again"
  case oneEnded = "a member of each group ended (SIGTERM), started again"
  case oneFrozen = "a member of each group frozen (SIGSTOP) until the group has given it up"
  case brokerKilled = "the broker killed (SIGKILL), started again"
  case brokerFrozen = "the broker frozen (SIGSTOP)"
  case databaseGone = "PostgreSQL killed (SIGKILL), started again"
  case auditLogKilled = "the audit log killed (SIGKILL), started again"
  case targetSilent = "a target that takes calls and never answers"
  case rightMissing = "the right to write outcomes taken away"
  case diskFull = "the disk of the SQLite store full"

  /// Whether a trial with the store in PostgreSQL has it, or else one with SQLite.
  func exists(withPostgreSQL isPostgreSQL: Bool) -> Bool {
    switch self {
    case .databaseGone: isPostgreSQL
    case .diskFull: !isPostgreSQL
    default: true
    }
  }
}
