package import AccountEvents
package import EventLoop
package import HTTPServer
package import Telemetry

/// Follows the files of a server's certificate, and says what becomes of it.
@Loop
package final class CertificateWatch {
  /// How often the files are looked at. What cannot be used is reported when it is the same at two looks: a pair is
  /// replaced in two steps, and between them it is none.
  package static let pause = Duration.seconds(5)

  private let server: HTTPServer
  private let now: @Sendable () -> Timestamp
  private let renewals: Counter
  private let failures: Counter
  private let logger: Logger

  /// Watches the certificate of `server`, and says at once if nobody can believe it.
  package init(
    _ server: HTTPServer, now: @escaping @Sendable () -> Timestamp, registry: MetricsRegistry, logger: Logger
  ) {
    (self.server, self.now, self.logger) = (server, now, logger)
    renewals = registry.counter("siwa_tls_reloads_total", "Times that a replaced certificate was taken.")
    failures = registry.counter(
      "siwa_tls_reload_failures_total",
      "Changes of the certificate's files that cannot be used: the old certificate stays. Alarm on any increase.")
    registry.gauge(
      "siwa_tls_certificate_not_after_seconds", "When the certificate expires, in seconds since 1970."
    ) { Loop.assumeIsolated { Double(server.certificateNotAfter ?? 0) } }
    checkValidity()
  }

  /// Looks every few seconds until its task is cancelled.
  package func run() async {
    while true {
      do { try await Loop.sleep(for: Self.pause) } catch { return }
      look(insisting: false)
    }
  }

  /// Looks now. `insisting`: somebody wants to know, and is told also what was said before.
  package func look(insisting: Bool) {
    switch server.renewCertificate(insisting: insisting) {
    case .unchanged, .unsettled:
      if insisting { logger.notice("certificate unchanged") }
    case .renewed:
      renewals.increment()
      logger.notice("certificate replaced", ["tls.notAfter": .integer(Int(server.certificateNotAfter ?? 0))])
      checkValidity()
      if let issuer = server.missingCertificateIssuer {
        logger.warning("the certificate stands alone, without that of its issuer", ["tls.issuer": .string(issuer)])
      }
    case .failed(let error):
      failures.increment()
      logger.error(
        "the replaced certificate cannot be used, the old one stays",
        ["reason": .string(error.code.rawValue), "detail": .string(error.message)])
    }
  }

  /// It is served all the same: it may be our clock that is wrong.
  private func checkValidity() {
    guard let start = server.certificateNotBefore, let end = server.certificateNotAfter else { return }
    let now = now().milliseconds / 1000
    if now > end {
      logger.error("the certificate has expired", ["tls.notAfter": .integer(Int(end))])
    } else if now < start {
      logger.error("the certificate is not valid yet", ["tls.notBefore": .integer(Int(start))])
    }
  }
}
