package import Configuration

/// Where the audit log is, for who looks into it and does not write it.
package struct AuditLogDirectorySettings: Configurable {
  /// The directory of the log.
  package var directory: String

  /// Reads `audit-log.directory`.
  package init(reading settings: inout Settings) {
    directory = settings.read(
      "audit-log.directory", .path, default: "/var/lib/siwa/audit-log",
      "Where the log is: entries, tiles and checkpoints, as tlog-tiles has them. `siwa audit begin` begins it; one process writes there."
    )
  }
}
