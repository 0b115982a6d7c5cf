import AccountEvents
import AccountStore
import JSON

/// What an application is told of an event: whose account, of which of its apps, and what to do about it.
struct ToldEvent: Sendable {
  /// What is to be done. The raw value is the event's name in the stream.
  enum Name: String, CaseIterable, Sendable {
    /// End the person's sessions.
    case sessionsEnded = "sessions-ended"
    /// Mail may be sent again, or may not be sent any more.
    case relayChanged = "relay-changed"
    /// Ask for the account: it has come with an app from another team, or gone with one.
    case accountTransferred = "account-transferred"
  }

  /// What is told where the topic does not hold any more what came next.
  static func gap(upTo position: EventPosition) -> String { "event: gap\nid: \(position.text)\ndata: {}\n\n" }

  let name: Name
  private let data: JSONValue

  /// The event as a caller with these apps is told of it; nil where it is none of the caller's.
  /// `identify` says the account's id.
  init?(
    _ event: AccountEvent, for clients: Set<ClientID>, seenBy sight: AccountSight, identify: (Account) -> AccountID
  ) {
    guard let concern = sight.concern(of: event, for: clients) else { return nil }
    var members: [JSONValue.Member] = [
      .init("id", .string(event.id.text)), .init("account", .string(identify(event.account).description)),
    ]
    // Apps that share no consent with the one that it came to need not know whom.
    if concern.isKnown { members.append(.init("sub", .string(event.subject.text))) }
    members += [
      .init("team", .string(event.team.text)),
      .init("clientIds", .array(concern.clients.map(\.text).sorted().map { .string($0) })),
      .init("occurredAt", .string(event.occurredAt.description)),
    ]
    switch event.kind {
    case .consentRevoked, .credentialInvalid, .accountDelete, .accountDeletionRequested:
      name = .sessionsEnded
      members.append(.init("cause", .string(event.kind.name)))
    case .emailEnabled:
      name = .relayChanged
      members += [.init("status", "enabled"), .init("maySend", true)]
    case .emailDisabled:
      name = .relayChanged
      members += [.init("status", "disabled"), .init("maySend", false)]
    case .accountTransferred:
      name = .accountTransferred
    }
    data = .object(members)
  }

  /// The event in the stream, with the position behind it.
  func text(at position: EventPosition) -> String {
    "event: \(name.rawValue)\nid: \(position.text)\ndata: \(String(decoding: data.bytes, as: UTF8.self))\n\n"
  }
}
