import AccountServices

/// See `siwa-ingress --help`.
@main
struct SiwaIngress {
  static func main() { IngressCommand.main() }
}
