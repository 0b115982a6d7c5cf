import AccountEvents
package import AccountStore
import AppleID
package import EventLoop
package import Kafka

/// Says whether a record holds what happened: an event that Apple signed for one of our apps, or a deletion that was asked
/// for, or a finding, by somebody who has the account store's key. Whoever may write to the topic, and no more, has nothing done by that.
@Loop
package final class EventVerification {
  /// How soon an event is looked at again that waits for the first keys: soon, and then more and more seldom.
  private static let pace = RetryPace(first: .milliseconds(100), longest: .seconds(30))

  /// Why a record is put aside that does not prove what it says.
  package nonisolated static let cause = "unverified"

  private let settings: VerificationSettings
  private let keys: RecordedSigningKeys
  private let store: any AccountStore

  /// A verification for the apps that are ours, by these keys.
  package init(_ settings: VerificationSettings, _ keys: RecordedSigningKeys, store: any AccountStore) {
    (self.settings, self.keys, self.store) = (settings, keys, store)
  }

  /// Returns where `record` proves the event that was read from it. Throws a permanent failure where it does not, and
  /// `waiting` as long as nobody can tell, however long that is: the key may be on its way.
  package func check(_ record: ConsumedRecord, _ delivery: Delivery) throws(ConsumerFailure) {
    let (event, headers) = (delivery.event, record.headers)
    func value(_ name: String) -> [UInt8]? { headers.last { $0.name == name }?.value }
    // What Apple never signs.
    if event.kind.isOurOwn {
      let request = DeletionRequest(
        record.value ?? [], by: value(EventRecord.requestedByHeader) ?? [],
        because: value(EventRecord.requestReasonHeader) ?? [])
      guard let code = value(EventRecord.requestCodeHeader) else { throw Self.unverified("nobody vouches for it") }
      guard store.isGenuine(String(decoding: code, as: UTF8.self), of: request) else {
        throw Self.unverified("its code is not of this account store, or of another request")
      }
      return
    }
    // What Apple signs for somebody else's app says nothing of the people of ours.
    guard settings.teams[event.audience] == event.team else { throw Self.unverified("it is of no app of ours") }
    guard let jws = value(EventRecord.signatureHeader) else {
      throw Self.unverified("it holds nothing that Apple signed")
    }
    switch keys.ring.judge(jws, provingThat: event, by: settings.issuer) {
    case .proven: return
    case .unproven: throw Self.unverified("what it holds does not prove it")
    case .unknownKey(let id): throw unknown(id, delivery)
    }
  }

  private func unknown(_ id: KeyID, _ delivery: Delivery) -> ConsumerFailure {
    guard let pause = keys.readAgain() else {
      return .waiting("signing-keys-missing", for: Self.pace.pause(after: delivery.waits + 1, random: 1))
    }
    return .waiting("signing-key-unknown", for: pause, detail: "its key \(id) is not on \(Topic.signingKeys)")
  }

  private static func unverified(_ detail: String) -> ConsumerFailure { .permanent(cause, detail: detail) }
}
