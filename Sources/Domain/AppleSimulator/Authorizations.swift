import AccountEvents
import Cryptography

/// Who has authorized which app, and the codes and tokens that stand for it.
struct Authorizations: Sendable {
  /// What Apple gives out: the letter with which it begins.
  private enum Kind: String { case code = "c", access = "a", refresh = "r" }

  private struct Issue: Sendable {
    let kind: Kind
    let person: Person
    let client: String
    let redirectURI: String?
    let issuedAt: Timestamp
  }

  /// New tokens, and whose they are.
  struct Tokens {
    let person: Person
    let access: String
    let refresh: String?
  }

  private var issues: [String: Issue] = [:]
  /// The codes and tokens of each person, by their subject.
  private var held: [String: Set<String>] = [:]

  /// How long a code can be redeemed, and how long an access token lives.
  static let lifetimes = (code: Duration.seconds(300), access: Duration.seconds(3600))

  /// The code of a new sign-in.
  mutating func signIn(
    _ person: Person, to client: String, redirectURI: String?, at now: Timestamp
  ) throws(CryptographyError) -> String {
    try issue(.code, to: person, client, redirectURI, now)
  }

  /// The tokens for a code, which is used up; nil where it is not good: `invalid_grant`.
  mutating func redeem(
    _ code: String, by client: String, redirectURI: String?, at now: Timestamp
  ) throws(CryptographyError) -> Tokens? {
    guard let issue = issues[code], issue.kind == .code, issue.client == client, issue.redirectURI == redirectURI,
      now - issue.issuedAt < Self.lifetimes.code
    else { return nil }
    remove(code)
    return Tokens(
      person: issue.person, access: try self.issue(.access, to: issue.person, client, nil, now),
      refresh: try self.issue(.refresh, to: issue.person, client, nil, now))
  }

  /// A new access token for a refresh token, which does not age; nil where it is not good: `invalid_grant`.
  mutating func refresh(_ token: String, by client: String, at now: Timestamp) throws(CryptographyError) -> Tokens? {
    guard let issue = issues[token], issue.kind == .refresh, issue.client == client else { return nil }
    return Tokens(
      person: issue.person, access: try self.issue(.access, to: issue.person, client, nil, now), refresh: nil)
  }

  /// Ends the authorization that a token stands for. Returns whose it was, or nil where nothing happens.
  mutating func revoke(_ token: String, by client: String, at now: Timestamp) -> Person? {
    guard let issue = issues[token], issue.kind != .code, issue.client == client else { return nil }
    if issue.kind == .access, now - issue.issuedAt >= Self.lifetimes.access { return nil }
    end(issue.person, client)
    return issue.person
  }

  /// Ends a person's authorization of one app, or with nil of all.
  mutating func end(_ person: Person, _ client: String?) {
    for text in held[person.subject] ?? [] where client == nil || issues[text]?.client == client { remove(text) }
  }

  /// Whether the person has a refresh token for the app that is good.
  func isHeld(by person: Person, _ client: String) -> Bool {
    (held[person.subject] ?? []).contains { issues[$0]?.kind == .refresh && issues[$0]?.client == client }
  }

  private mutating func issue(
    _ kind: Kind, to person: Person, _ client: String, _ redirectURI: String?, _ now: Timestamp
  ) throws(CryptographyError) -> String {
    let random = try SecureRandom.bytes(36)
    let hex = SHA256.digest(of: Array(random[..<16])).description.prefix(32)
    let letters = String(random[16..<20].map { Character(Unicode.Scalar(UInt8(ascii: "a") + $0 % 26)) })
    let text = "\(kind.rawValue)\(hex).0.\(letters).\(Base64URL.encode(Array(random[20...])))"
    issues[text] = Issue(kind: kind, person: person, client: client, redirectURI: redirectURI, issuedAt: now)
    held[person.subject, default: []].insert(text)
    return text
  }

  private mutating func remove(_ text: String) {
    guard let issue = issues.removeValue(forKey: text) else { return }
    held[issue.person.subject]?.remove(text)
    if held[issue.person.subject]?.isEmpty == true { held[issue.person.subject] = nil }
  }
}
