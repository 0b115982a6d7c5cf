import AccountServices

/// See `siwa-email-relay --help`.
@main
struct SiwaEmailRelay {
  static func main() { EmailRelayProgram.main() }
}
