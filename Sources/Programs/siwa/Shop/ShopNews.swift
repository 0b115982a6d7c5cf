import AccountEvents
import Cryptography
import Kafka

/// What siwa's topics say of people, as an application reads them: an event says whom it is about, and what followed from it
/// says which event that was.
struct ShopNews {
  /// Something that happened to somebody, or was done about it.
  struct Item: Sendable {
    /// The digest of team and `sub`.
    let who: SHA256Digest
    /// When it happened.
    let at: Timestamp
    /// Who says so.
    let source: String
    /// What it is called on its topic.
    let name: String
    /// In words.
    let words: String
    /// What it followed from; nil of an event.
    let cause: String?
    /// Of `sessions-ended`: when that happened because of which sessions end.
    var endsSessions: Timestamp?
  }

  /// More events are not remembered, nor more outcomes whose event has not been read yet.
  private static let most = 1000

  private var people: [EventID: SHA256Digest] = [:]
  private var early: [EventID: [AccountOutcome]] = [:]
  private var earlyCount = 0

  /// Whom an item is about: a digest, so that what is remembered of a visit names nobody.
  static func digest(of subject: AppleSubject, _ team: TeamID) -> SHA256Digest {
    SHA256.digest(of: Array("\(team.text)/\(subject.text)".utf8))
  }

  /// What a record says, and what followed from it where that was read before. Throws what is wrong with a record.
  mutating func read(_ record: ConsumedRecord) throws -> [Item] {
    guard let value = record.value else { return [] }
    switch record.topic {
    case Topic.accountEvents.name:
      let event = try AccountEvent(decoding: value)
      let who = Self.digest(of: event.subject, event.team)
      if people.count >= Self.most { people = [:] }
      people[event.id] = who
      // Each topic is read by itself: what follows may be read before.
      let outcomes = early.removeValue(forKey: event.id) ?? []
      earlyCount -= outcomes.count
      return [Item(event, who)] + outcomes.map { Item($0, who) }
    case Topic.outcomes.name:
      let outcome = try AccountOutcome(decoding: value)
      if let who = people[outcome.cause.id] { return [Item(outcome, who)] }
      if earlyCount >= Self.most { (early, earlyCount) = ([:], 0) }
      early[outcome.cause.id, default: []].append(outcome)
      earlyCount += 1
      return []
    default: return []
    }
  }
}

extension ShopNews.Item {
  fileprivate init(_ event: AccountEvent, _ who: SHA256Digest) {
    self.init(
      who: who, at: event.occurredAt, source: event.kind.isOurOwn ? "siwa-accounts" : "Apple", name: event.kind.name,
      words: event.kind.words, cause: nil)
  }

  fileprivate init(_ outcome: AccountOutcome, _ who: SHA256Digest) {
    self.init(
      who: who, at: outcome.doneAt, source: "siwa-\(outcome.consumer)", name: outcome.name.rawValue,
      words: outcome.words, cause: outcome.cause.type,
      endsSessions: outcome.name == .sessionsEnded ? outcome.cause.occurredAt : nil)
  }
}

extension AccountEvent.Kind {
  fileprivate var words: String {
    switch self {
    case .emailEnabled: "Mail is forwarded to you again."
    case .emailDisabled: "Mail is not forwarded to you any more."
    case .consentRevoked: "Your Apple Account is used with this shop no more."
    case .accountDelete: "Your Apple Account is deleted."
    case .accountDeletionRequested: "You have asked for the deletion of your account."
    case .credentialInvalid: "Apple does not know your sign-in any more."
    case .accountTransferred: "The shop has another owner, and you have come with it."
    }
  }
}

extension AccountOutcome {
  fileprivate var words: String {
    switch name {
    case .tokensRevoked: "The tokens are gone."
    case .revocationUnproven: "Apple was asked to end the authorization, and has not confirmed it yet."
    case .noToken: "There was no token to revoke."
    case .sessionsEnded: "Whoever has sessions of yours ends them."
    case .accountErased: "Your data are erased" + targets.map(\.words).joined() + "."
    case .relayChanged, .accountTransferred: "Mailers know."
    case .noEffect: "Nothing was to be done" + (reason.map { ": \($0.rawValue)." } ?? ".")
    }
  }
}
