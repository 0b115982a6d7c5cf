import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Telemetry
import TestSupport
import Testing

/// What outcomes say of a restored store, and how long a store has to remember.
@Loop @Suite struct StoreCareTests {
  private nonisolated static let consumers: [AccountOutcome.Name: ConsumerName] = [
    .accountErased: .dataEraser, .relayChanged: .emailRelay, .tokensRevoked: .tokenRevoker, .noToken: .tokenRevoker,
    .revocationUnproven: .tokenRevoker, .sessionsEnded: .tokenRevoker, .noEffect: .dataEraser,
  ]

  /// The outcome, the type of its event, whether what the store keeps is among its targets, and what is over since.
  @Test(
    arguments: [
      (.accountErased, "account-delete", true, .erased(isFinal: true)),
      (.accountErased, "account-deletion-requested", false, .erased(isFinal: true)),
      (.accountErased, "consent-revoked", true, .erased(isFinal: false)),
      (.accountErased, "credential-invalid", true, .erased(isFinal: false)),
      // Of a withdrawn consent the policy may name a newsletter alone.
      (.accountErased, "consent-revoked", false, nil),
      (.relayChanged, "email-enabled", false, .mailChanged), (.relayChanged, "email-disabled", false, .mailChanged),
      (.relayChanged, "consent-revoked", false, .mailForgotten(isFinal: false)),
      (.relayChanged, "credential-invalid", false, .mailForgotten(isFinal: false)),
      (.relayChanged, "account-delete", false, .mailForgotten(isFinal: true)),
      (.tokensRevoked, "account-delete", false, .tokensEnded), (.noToken, "account-delete", false, .tokensEnded),
      (.revocationUnproven, "account-deletion-requested", false, .tokensEnded),
      (.noEffect, "account-delete", false, nil), (.noEffect, "email-enabled", true, nil),
      (.tokensRevoked, "consent-revoked", false, nil), (.sessionsEnded, "account-delete", false, nil),
    ] as [(AccountOutcome.Name, String, Bool, RecordedOutcome.Ending?)])
  func anOutcomeSaysWhatIsOver(
    _ name: AccountOutcome.Name, _ type: String, _ isStoreErased: Bool, _ ending: RecordedOutcome.Ending?
  ) throws {
    func outcome(by consumer: ConsumerName) throws -> AccountOutcome {
      let targets =
        [AccountOutcome.Target(name: "shop", state: "erased", before: 1, affected: 1, after: 0)]
        + (isStoreErased
          ? [AccountOutcome.Target(name: "account-store", state: "erased", before: nil, affected: nil, after: nil)]
          : [])
      return AccountOutcome(
        account: try #require(AccountHash([UInt8](repeating: 7, count: 32))), name: name,
        reason: name == .noEffect ? .supersededByNewerEvent : nil,
        cause: AccountOutcome.Cause(
          id: try #require(EventID("event-1")), type: type, occurredAt: .sample(1_800_000_000_000)),
        consumer: consumer.text, doneAt: .sample(1_800_000_001_000), targets: targets)
    }
    let consumer = try #require(Self.consumers[name])
    let recorded = try #require(RecordedOutcome(try outcome(by: consumer)))
    #expect(recorded.ending == ending)
    #expect(recorded.consumer == consumer && recorded.event.text == "event-1")
    #expect(recorded.occurredAt == .sample(1_800_000_000_000), "when it happened, not when it was done")
    // Somebody else's consumer says nothing of what ours have done.
    #expect(RecordedOutcome(try outcome(by: "newsletter"))?.ending == nil)
  }

  @Test func recordsCanBeReadForLongerThanTheirTopicIsToldToKeepThem() throws {
    func topic(_ settings: [String: String]) -> TopicState {
      TopicState(partitions: 1, replication: 1, settings: settings)
    }
    let day: Int64 = 86_400_000
    let known = try #require(
      RecordLifetime(
        topic(["cleanup.policy": "delete", "retention.ms": "\(14 * day)", "segment.ms": "\(7 * day)"])))
    #expect(known.end == .seconds(22 * 86_400), "a segment goes as a whole, and brokers look now and then")
    for settings in [
      ["cleanup.policy": "compact", "retention.ms": "\(day)", "segment.ms": "\(day)"],
      ["cleanup.policy": "delete", "retention.ms": "-1", "segment.ms": "\(day)"],
      ["cleanup.policy": "delete", "retention.ms": "\(day)"], [:],
    ] { #expect(RecordLifetime(topic(settings)) == nil, "\(settings)") }
    #expect(
      RecordLifetime(topic(["cleanup.policy": "compact,delete", "retention.ms": "0", "segment.ms": "0"]))?.end
        == .seconds(86_400))
  }

  @Test func operatorsSeeHowLargeTheStoreIs() async throws {
    let files = StoreOfTests()
    let store = WatchedStore(try await files.open())
    let (registry, log) = (MetricsRegistry(), CapturedLog())
    let watch = StoreWatch(store, registry: registry, logger: log.logger())
    await watch.look()
    let lines = String(decoding: registry.render(), as: UTF8.self).split(separator: "\n")
    let value = try #require(lines.first { $0.hasPrefix("siwa_store_bytes ") }?.split(separator: " ").last)
    let size = try await store.size()
    #expect(Double(value) == Double(size) && size > 0)
    store.before = { _ throws(AccountStoreError) in throw AccountStoreError(.unavailable, "told to") }
    for _ in 1...2 { await watch.look() }
    #expect(log.lines.count { $0.contains("nobody knows how large the store is") } == 1)
    await store.close()
  }
}
