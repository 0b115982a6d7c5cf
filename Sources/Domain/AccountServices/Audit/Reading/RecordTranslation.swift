package import AccountEvents
package import AppleID
import Cryptography
package import Kafka

/// Makes entries of records. It reads the records alone, so that any thread may do it.
package struct RecordTranslation: Sendable {
  /// What comes of a record.
  package enum Result: Sendable, Hashable {
    /// These entries, which may be none.
    case entries([AuditEntry])
    /// These, unless a key comes that verifies the signature: none of that name is known, or none that it fits.
    case awaitsKey(entries: [AuditEntry], isKeyUnknown: Bool)
  }

  private let hash: @Sendable (Account) -> AccountHash
  private let issuer: String

  /// A translation that names accounts by `hash`. `issuer` is who signs notifications.
  package init(hash: @escaping @Sendable (Account) -> AccountHash, issuer: String) {
    (self.hash, self.issuer) = (hash, issuer)
  }

  /// The entries of a record, with what these keys say of Apple's signature.
  package func entries(
    of record: ConsumedRecord, on topic: AuditedTopic, keys: SigningKeyRing, at now: Timestamp
  ) -> Result {
    switch topic {
    case .events: event(record, keys, at: now)
    case .outcomes: .entries([AuditEntry.Effect(record).map { .effect($0) } ?? unreadable(record, at: now)])
    case .letters(let letters): .entries(AuditEntry.Decision(record, on: letters).map { [.decision($0)] } ?? [])
    }
  }

  private func event(_ record: ConsumedRecord, _ keys: SigningKeyRing, at now: Timestamp) -> Result {
    guard let value = record.value else { return .entries([unreadable(record, at: now)]) }
    let event: AccountEvent
    do throws(EventDecodingError) { event = try AccountEvent(decoding: value) } catch {
      return .entries([unreadable(record, at: now)])
    }
    let (source, headers) = (AuditEntry.Source(record), record.headers)
    let request = AuditEntry.Decision(event, headers, at: source).map { [AuditEntry.decision($0)] } ?? []
    let jws = headers.last { $0.name == EventRecord.signatureHeader }?.value
    func obligation(_ signature: AuditEntry.Obligation.Signature, _ key: KeyID?) -> [AuditEntry] {
      [
        .obligation(
          AuditEntry.Obligation(
            event, at: source, account: hash(event.account), jws: jws.map { SHA256.digest(of: $0) }, keyID: key,
            signature: signature))
      ] + request
    }
    guard let jws else { return .entries(obligation(.none, nil)) }
    switch keys.judge(jws, provingThat: event, by: issuer) {
    case .proven(let key): return .entries(obligation(.verified, key))
    case .unproven(nil): return .entries(obligation(.refused, nil))
    // A key of that name can have come that is another one.
    case .unproven(let key?): return .awaitsKey(entries: obligation(.refused, key), isKeyUnknown: false)
    case .unknownKey(let key): return .awaitsKey(entries: obligation(.unknownKey, key), isKeyUnknown: true)
    }
  }

  /// A record that is none that this version understands. Its entry is the same whenever it is made.
  private func unreadable(_ record: ConsumedRecord, at now: Timestamp) -> AuditEntry {
    let source = AuditEntry.Source(record)
    return .gap(
      AuditEntry.Gap(
        .unreadable, topic: source.origin.topic, partition: source.origin.partition, from: source.origin.offset,
        to: source.origin.offset + 1, at: source.time ?? now))
  }
}
