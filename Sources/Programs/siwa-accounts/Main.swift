import AccountServices

/// See `siwa-accounts --help`.
@main
struct SiwaAccounts {
  static func main() { AccountsCommand.main() }
}
