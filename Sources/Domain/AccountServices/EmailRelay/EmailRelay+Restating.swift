import AccountEvents
package import AccountStore

extension EmailRelay {
  /// The same consumer, which says anew what the store knows of an account where an old record of its topic may stand
  /// behind a newer one.
  package static func restating(_ consumer: EventConsumer, from store: any AccountStore) -> EventConsumer {
    var consumer = consumer
    consumer.restate = { announcement throws(AccountStoreError) in
      guard announcement.topic == .emailRelay, let account = Account(key: announcement.key),
        let knowledge = try await store.relayStates(of: [account]).first
      else { return nil }
      guard case .known(let state) = knowledge, let event = EventID("restated.\(state.since.milliseconds)") else {
        return Announcement(forgettingRelayOf: account)
      }
      return Announcement(RelayRecord(account: account, state: state, event: event))
    }
    return consumer
  }
}

extension Account {
  /// Nil unless the key is one of an account's records.
  fileprivate init?(key: [UInt8]) {
    let parts = String(decoding: key, as: UTF8.self).split(separator: "/", maxSplits: 1)
    guard parts.count == 2, let team = TeamID(String(parts[0])), let subject = AppleSubject(String(parts[1])) else {
      return nil
    }
    self.init(team: team, subject: subject)
  }
}
