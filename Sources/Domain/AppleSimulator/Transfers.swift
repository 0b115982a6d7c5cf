import AccountEvents
import Cryptography

/// Apps that change teams, and what stands for their users meanwhile.
struct Transfers: Sendable {
  private struct Transfer: Sendable {
    let from, to: String
    let acceptedAt: Timestamp?

    func isAccepted(at now: Timestamp) -> Bool { acceptedAt.map { $0 <= now } ?? false }

    /// Whether both teams can ask: once it is accepted, and for 60 days.
    func isOpen(at now: Timestamp) -> Bool {
      acceptedAt.map { $0 <= now && now - $0 < .seconds(60 * 86_400) } ?? false
    }
  }

  private struct Token: Sendable {
    let team: String
    let client: String
    let issuedAt: Timestamp
  }

  private var transfers: [String: Transfer] = [:]
  private var recipients: Set<String> = []
  private var tokens: [String: Token] = [:]
  /// The subjects of whom each team has transfer identifiers, by these.
  private var issued: [String: [String: String]] = [:]

  /// An app goes from one team to another, or will.
  mutating func begin(_ client: String, from: String, to: String, acceptedAt: Timestamp?) {
    transfers[client] = Transfer(from: from, to: to, acceptedAt: acceptedAt)
    recipients.insert(to)
  }

  /// Whether the team gets an app from another one.
  func isRecipient(_ team: String) -> Bool { recipients.contains(team) }

  /// The team that has the app, where it changes teams.
  func team(of client: String, at now: Timestamp) -> String? {
    transfers[client].map { $0.isAccepted(at: now) ? $0.to : $0.from }
  }

  /// Whether the team has had the app.
  func hasSent(_ client: String, _ team: String, at now: Timestamp) -> Bool {
    transfers[client].map { $0.from == team && $0.isAccepted(at: now) } ?? false
  }

  /// Since when the app is the receiving team's, in the 60 days.
  func openSince(_ client: String, at now: Timestamp) -> Timestamp? {
    transfers[client].flatMap { $0.isOpen(at: now) ? $0.acceptedAt : nil }
  }

  // MARK: Access tokens of teams

  /// Notes that a team has an access token, for an hour.
  mutating func issue(_ token: String, to caller: Caller, at now: Timestamp) {
    tokens = tokens.filter { Self.isGood($0.value, at: now) }
    tokens[token] = Token(team: caller.team, client: caller.client, issuedAt: now)
  }

  /// Whether the caller has this access token.
  func accepts(_ token: String, of caller: Caller, at now: Timestamp) -> Bool {
    guard let token = tokens[token], Self.isGood(token, at: now) else { return false }
    return token.team == caller.team && token.client == caller.client
  }

  /// Ends all access tokens before their time.
  mutating func endTokens() { tokens = [:] }

  private static func isGood(_ token: Token, at now: Timestamp) -> Bool {
    now - token.issuedAt < Authorizations.lifetimes.access
  }

  // MARK: Transfer identifiers

  /// Whether the team may have identifiers for the other one: whoever has the app, and who has sent it for 60 days more.
  func mayGenerate(_ caller: Caller, for target: String, at now: Timestamp) -> Bool {
    guard hasSent(caller.client, caller.team, at: now), let transfer = transfers[caller.client] else { return true }
    return transfer.isOpen(at: now) && (target == transfer.to || target == transfer.from)
  }

  /// What stands for a person towards a team: always the same, and of no use where it is the asking team itself.
  mutating func identifier(of subject: String, for target: String, asking team: String?) -> String {
    let isUseless = target == team
    let text = "\(isUseless ? "useless" : "transfer") \(target) \(subject)"
    let identifier = "001876.r" + SHA256.digest(of: [UInt8](text.utf8)).description.prefix(32)
    if !isUseless { issued[target, default: [:]][identifier] = subject }
    return identifier
  }

  /// For whom an identifier stands; nil where it is none for this team, or there is no transfer to it.
  func subject(of identifier: String, for caller: Caller, at now: Timestamp) -> String? {
    guard let transfer = transfers[caller.client], transfer.to == caller.team, transfer.isOpen(at: now) else {
      return nil
    }
    return issued[caller.team]?[identifier]
  }
}

/// Who asks an endpoint, and has proved it.
struct Caller: Sendable {
  let client: String
  let team: String
}
