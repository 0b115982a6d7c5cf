import AccountEvents
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

@testable import AccountServices

/// What was asked for by a clock that was ahead: it would make void whatever happens until then, and nobody could take that
/// back.
@Loop @Suite struct AheadOfTimeTests {
  @Test(arguments: [AccountEvent.Kind.accountDeletionRequested, .credentialInvalid, .accountDelete])
  func waitsForAPerson(_ kind: AccountEvent.Kind) async throws {
    let rig = try await ProcessorRig(
      .local("sample", outcomes: ["done"], interest: { _ in Interest(severity: 0, yieldsTo: []) }) { _ in
        Decision("done")
      })
    try await rig.assign(0)
    let letters = "siwa_consumer_dead_letters_total{consumer=\"sample\",cause=\"ahead-of-time\"}"
    #expect(rig.metric(letters) == "0", "it is there before the first: an increase is seen")
    // The records are five seconds old; twice a minute and a second are tolerated.
    for (number, ahead) in [(1, 115), (2, 117), (3, 365 * 86_400)] {
      let sample = AccountEvent.sample(number, of: "user-\(number)", kind)
      let time = ProcessorRig.now + .seconds(ahead)
      try await rig.send(
        AccountEvent(
          id: sample.id, team: sample.team, audience: sample.audience, subject: sample.subject, kind: kind,
          occurredAt: time, issuedAt: time))
    }
    let aside = rig.cluster.appended(on: Topic.deadLetters(of: "sample").name).map { record in
      record.headers.last { $0.name == "ce_id" }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
    // What Apple signed is the ingress's to judge; what nobody proves is not a year ahead.
    #expect(aside == (kind == .accountDelete ? ["event-3"] : ["event-2", "event-3"]))
    #expect(rig.metric(letters) == (kind == .accountDelete ? "1" : "2"))
    await rig.drain()
  }
}
