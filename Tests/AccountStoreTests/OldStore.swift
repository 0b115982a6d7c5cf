import AccountEvents
import EventLoop
import Testing

@testable import AccountStore

/// What stands in the rows of a store that an older version has made.
struct OldStore {
  let hashKey: [UInt8]
  /// The row of `Sample.account()`, with a token.
  let account: SealedAccount
  let token: [UInt8]
  /// An event that it has settled.
  static let event = Sample.event("old", at: 1, partition: 3, offset: 41)

  init(_ master: MasterKey) throws {
    let wrapped = try StoreKeys.wrap(Sample.hashKey, number: 1, nil, for: master)
    hashKey = wrapped.key
    let keys = try StoreKeys(StoreKeys.Wrapped(keys: [wrapped]), with: master)
    let hash = keys.hash(of: Sample.account())
    let (cipher, row) = try keys.makeDataKey(of: Sample.account(), hash)
    (account, token) = (row, try SealedToken.seal(Sample.token(), of: hash, with: cipher))
  }

  /// What was settled before counts as announced, as nobody can say it again; what is settled now does not.
  @Loop
  static func expectItsLedgerIsAnnounced(in store: any AccountStore) async throws {
    let entry = LedgerEntry(origin: nil, outcome: "done", detail: "", at: Sample.time(2))
    let next = Sample.event("next", at: 5, partition: 3, offset: 40)
    #expect(try await store.standings(of: [event], for: Sample.relay) == [.settled(entry)])
    let settlements = [event.settled(), next.settled(), next.settled()]
    #expect(
      try await store.settle(settlements, at: Sample.time(9))
        == [.repeated(entry), .applied, .repeated(next.entry(at: Sample.time(9)))])
    let claims = [PartitionClaim(event.origin.source)]
    #expect(
      try await store.claim(claims, for: Sample.relay)
        == [AnnouncedMark(consumer: Sample.relay, partition: event.origin.source, claim: 1, offset: 0)],
      "below what is settled there may be what is not")
  }
}
