import AccountEvents
import AccountStore

extension EmailRelay {
  /// What the store knows of each account now: the announcement itself, where that is the same.
  static func restate(
    _ announcements: [Announcement], from store: any AccountStore
  ) async throws(AccountStoreError) -> [Announcement] {
    var (accounts, places) = ([Account](), [Int]())
    for (place, announcement) in announcements.enumerated() {
      guard let account = Account(key: String(decoding: announcement.key, as: UTF8.self)) else { continue }
      accounts.append(account)
      places.append(place)
    }
    var restated = announcements
    for (index, knowledge) in try await store.relayStates(of: accounts).enumerated() {
      let place = places[index]
      guard case .known(let state) = knowledge, let event = EventID("restated.\(state.since.milliseconds)") else {
        restated[place] = Announcement(forgettingRelayOf: accounts[index])
        continue
      }
      if announcements[place].relayState != state {
        restated[place] = Announcement(RelayRecord(account: accounts[index], state: state, event: event))
      }
    }
    return restated
  }
}

extension Announcement {
  /// What it says of mail; nil where it is a tombstone, or says nothing of it.
  fileprivate var relayState: RelayState? {
    guard let value else { return nil }
    do throws(EventDecodingError) { return try RelayRecord(decoding: value).state } catch { return nil }
  }
}
