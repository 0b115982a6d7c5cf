import AccountServices
import AppleSimulator
import EventLoop
import HTTPClient
import TestSupport
import Testing

/// Whatever comes in and whatever becomes of it: nothing of it stands in a log, in a metric or in an answer.
@Loop @Suite struct PrivacyTests {
  @Test(arguments: [nil, .unavailable, .uncertain, .refused] as [EventLogError.Outcome?])
  func nothingPersonalIsToldToOperators(outcome: EventLogError.Outcome?) async throws {
    try await IngressRig.run { rig in
      rig.log.fault = { _ in outcome.map { .sample($0) } }
      var secrets: Set<String> = [IngressRig.person.subject, IngressRig.person.address]
      secrets.formUnion(IngressRig.person.subject.split(separator: ".").map(String.init).filter { $0.count > 10 })
      secrets.insert(String(IngressRig.person.address.prefix { $0 != "@" }))
      var shown = ""
      for fault in [nil] + Fault.allCases.map(Optional.some) where fault != .bodyTenMegabytes {
        let notification = try rig.apple.sign(
          .emailDisabled, of: IngressRig.person, for: IngressRig.app, faults: fault.map { [$0] } ?? [])
        // Header, claims and signature, from their beginnings and from within.
        for part in notification.jws.split(separator: ".") where part.count > 80 {
          secrets.formUnion([String(part.prefix(32)), String(part.dropLast(8).suffix(32))])
        }
        shown += String(decoding: try await rig.post(notification.body).body, as: UTF8.self)
      }
      #expect(secrets.count > 80)
      for path in ["/livez", "/readyz", "/metrics", "/else"] { shown += try await rig.administration(path).text }
      shown += rig.lines.lines.joined()
      #expect(shown.contains("notification refused") && shown.contains("siwa_ingress_notifications_accepted_total"))
      for secret in secrets { #expect(!shown.contains(secret)) }
    }
  }
}
