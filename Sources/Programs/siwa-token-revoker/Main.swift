import AccountServices

/// See `siwa-token-revoker --help`.
@main
struct SiwaTokenRevoker {
  static func main() { TokenRevokerProgram.main() }
}
