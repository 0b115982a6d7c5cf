import AccountServices

/// See `siwa-audit-log --help`.
@main
struct SiwaAuditLog {
  static func main() { AuditLogCommand.main() }
}
