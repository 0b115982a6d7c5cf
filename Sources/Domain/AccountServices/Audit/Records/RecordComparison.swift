import AccountEvents
package import AppleID
import Cryptography
package import Kafka

/// Compares what the log says of events with their records, as far as Kafka still has them, and verifies Apple's signatures
/// once more: by the keys on `Topic.signingKeys`, over all of Apple's key rotations.
///
/// The log's obligations are taken in first, then the records. What is kept is some hundred bytes for each obligation whose
/// record may still be there.
package struct RecordComparison: Sendable {
  /// What does not fit.
  package struct Finding: Sendable, Hashable, CustomStringConvertible {
    /// What kind of misfit it is.
    package enum Kind: String, Sendable, CaseIterable {
      /// The record is not the one whose SHA-256 the log has.
      case otherNotification = "other-notification"
      /// The log has no obligation for a record that it has passed.
      case notLogged = "not-logged"
      /// The log says that the signature holds, and it does not.
      case signatureDoesNotHold = "signature-does-not-hold"
      /// The log says that Apple signed it, and its key is not on `Topic.signingKeys`.
      case keyIsMissing = "key-is-missing"
      /// The record is no event, and the log does not say so, or says that one was there.
      case unreadable
    }

    /// What does not fit.
    package let kind: Kind
    /// The record.
    package let record: RecordOrigin
    /// The entry; nil where there is none.
    package let entry: UInt64?

    /// The kind, the record and the entry.
    package var description: String {
      "\(kind.rawValue): \(record)\(entry.map { ", entry \($0)" } ?? "")"
    }
  }

  private struct Logged: Sendable {
    let index: UInt64
    let partition: Int32
    let offset: Int64
    let jws: ShortDigest?
    let isVerified: Bool
  }

  /// Where a record is.
  private struct Place: Sendable, Hashable {
    let partition: Int32
    let offset: Int64
  }

  /// What an obligation is known by.
  private struct Key: Sendable, Hashable {
    private let identity: ShortDigest

    init(_ team: TeamID, _ audience: ClientID, _ id: EventID) {
      identity = ShortDigest(of: Array("\(team.text) \(audience.text) \(id.text)".utf8))
    }
  }

  private let held: [Int32: Range<Int64>]
  private let keys: SigningKeyRing
  private let issuer: String
  private var logged: [Key: Logged] = [:]
  /// Records whose obligation is not among those that are kept.
  private var suspects: [Key: RecordOrigin] = [:]
  /// Behind the last record of each partition that the log has.
  private var ends: [Int32: Int64] = [:]
  /// How many records were compared, and how many of them were signed by Apple.
  package private(set) var (compared, signed) = (0, 0)
  /// How many records the log has not come to: they are younger than its checkpoint.
  package private(set) var younger = 0
  /// How many of those that were compared are no events, as the log says of them, too.
  package private(set) var unreadable = 0
  /// The records that are no events, as the log says.
  private var notedUnreadable: Set<Place> = []
  /// Where the log has obligations: what is there is an event, whatever else the log says.
  private var obliged: Set<Place> = []

  /// Nothing yet. `held` is which offsets of `Topic.accountEvents` there are; `issuer` is who must have issued
  /// notifications.
  package init(of held: [Int32: Range<Int64>], _ keys: SigningKeyRing, issuedBy issuer: String) {
    (self.held, self.keys, self.issuer) = (held, keys, issuer)
  }

  /// Takes in an entry of the log.
  package mutating func take(_ entry: AuditEntry, at index: UInt64) {
    switch entry {
    case .obligation(let obligation):
      let (partition, offset) = (obligation.source.origin.partition, obligation.source.origin.offset)
      ends[partition] = max(ends[partition] ?? 0, offset + 1)
      guard held[partition]?.contains(offset) == true else { return }
      obliged.insert(Place(partition: partition, offset: offset))
      let key = Key(obligation.team, obligation.audience, obligation.id)
      logged[key] = Logged(
        index: index, partition: partition, offset: offset,
        jws: obligation.jws.map { ShortDigest($0) }, isVerified: obligation.signature == .verified)
    // What the log says that it has not seen is no misfit.
    case .gap(let gap) where gap.topic == Topic.accountEvents.name:
      ends[gap.partition] = max(ends[gap.partition] ?? 0, gap.to)
      // Each such record has an entry of its own.
      if gap.cause == .unreadable, held[gap.partition]?.contains(gap.from) == true {
        notedUnreadable.insert(Place(partition: gap.partition, offset: gap.from))
      }
    case .gap, .effect, .decision: break
    }
  }

  /// Compares a record, once all entries were taken in; nil where nothing is wrong, or only `suspects` can tell.
  package mutating func compare(_ record: ConsumedRecord) -> Finding? {
    let origin = RecordOrigin(record)
    guard origin.offset < ends[origin.partition] ?? 0 else {
      younger += 1
      return nil
    }
    compared += 1
    let event: AccountEvent
    do throws(EventDecodingError) { event = try AccountEvent(decoding: record.value ?? []) } catch {
      let place = Place(partition: origin.partition, offset: origin.offset)
      guard notedUnreadable.contains(place), !obliged.contains(place) else {
        return Finding(kind: .unreadable, record: origin, entry: nil)
      }
      unreadable += 1
      return nil
    }
    let key = Key(event.team, event.audience, event.id)
    guard let entry = logged[key] else {
      suspects[key] = origin
      return nil
    }
    let jws = record.headers.last { $0.name == EventRecord.signatureHeader }?.value
    // The same event may stand on the topic twice; the log has the record that it came to first.
    let isOwn = (entry.partition, entry.offset) == (origin.partition, origin.offset)
    if isOwn, jws.map({ ShortDigest(of: $0) }) != entry.jws {
      return Finding(kind: .otherNotification, record: origin, entry: entry.index)
    }
    guard isOwn, entry.isVerified, let jws else { return nil }
    switch keys.judge(jws, provingThat: event, by: issuer) {
    case .proven:
      signed += 1
      return nil
    case .unknownKey: return Finding(kind: .keyIsMissing, record: origin, entry: entry.index)
    case .unproven: return Finding(kind: .signatureDoesNotHold, record: origin, entry: entry.index)
    }
  }

  /// Whether the log has to be read once more, because there are records whose obligation may be an old one: an event can
  /// stand on the topic twice, and the record that the log came to first may be gone.
  package var hasSuspects: Bool { !suspects.isEmpty }

  /// Takes in an entry of the log once more.
  package mutating func clear(by entry: AuditEntry) {
    guard case .obligation(let obligation) = entry else { return }
    suspects[Key(obligation.team, obligation.audience, obligation.id)] = nil
  }

  /// What is left of them then: records that the log has passed over.
  package var notLogged: [Finding] {
    suspects.values.sorted().map { Finding(kind: .notLogged, record: $0, entry: nil) }
  }
}
