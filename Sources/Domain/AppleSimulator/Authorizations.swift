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
    let nonce: String?
    let issuedAt: Timestamp
  }

  /// New tokens, and whose they are.
  struct Tokens {
    let person: Person
    let access: String
    let refresh: String?
    /// What the app bound the sign-in to; nil for a refresh token.
    let nonce: String?
  }

  /// What a person lets an app know, from their first sign-in until their authorization ends.
  struct Consent: Sendable {
    /// The person, with the address that the app has.
    let person: Person
    /// Since when.
    let since: Timestamp
    /// Whether mail to the private relay is forwarded.
    var forwardsMail = true
    /// Whether the app has an address at the private relay.
    var isRelayed: Bool { person.hidesAddress && person.tellsAddress }
  }

  private var issues: [String: Issue] = [:]
  /// The codes and tokens of each person, by their subject.
  private var held: [String: Set<String>] = [:]
  /// What each person lets each app know, by their subject and the app.
  private var consents: [String: [String: Consent]] = [:]
  /// The apps whose user everybody is, and the subjects of those who are not.
  private var populated: [String: Set<String>] = [:]
  /// Whether a code is good after the end of its person's authorization for the app: Apple does not say whether one is.
  var keepsCodes = false

  /// How long a code can be redeemed, and how long an access token lives.
  static let lifetimes = (code: Duration.seconds(300), access: Duration.seconds(3600))

  /// The code of a new sign-in. What the person let the app know before stays as it was.
  mutating func signIn(
    _ person: Person, to client: String, redirectURI: String?, nonce: String?, at now: Timestamp
  ) throws(CryptographyError) -> String {
    let consent = consents[person.subject]?[client] ?? Consent(person: person, since: now)
    consents[person.subject, default: [:]][client] = consent
    populated[client]?.remove(person.subject)
    return try issue(.code, to: consent.person, client, redirectURI, nonce, now)
  }

  /// What the person lets the app know; nil where they have not signed in to it.
  func consent(of person: Person, to client: String) -> Consent? { consents[person.subject]?[client] }

  /// Makes everybody a user of the app.
  mutating func populate(_ client: String) { populated[client] = populated[client] ?? [] }

  /// The user of an app who has this subject; nil where there is none, or they have withdrawn their consent.
  func user(_ subject: String, of client: String) -> Person? {
    if let consent = consents[subject]?[client] { return consent.person }
    guard let others = populated[client], !others.contains(subject), Person.isSubject(subject) else { return nil }
    return Person(named: subject)
  }

  /// Whether they were a user of the app before that time.
  func isUser(_ subject: String, of client: String, before time: Timestamp) -> Bool {
    populated[client] != nil || consents[subject]?[client].map { $0.since < time } ?? false
  }

  /// The apps that the person has signed in to, by name.
  func apps(of person: Person) -> [(client: String, consent: Consent)] {
    (consents[person.subject] ?? [:]).map { (client: $0.key, consent: $0.value) }.sorted { $0.client < $1.client }
  }

  /// Has the private relay forward an app's mail, or withhold it. False where nothing changes.
  mutating func forwardMail(_ forwards: Bool, of person: Person, to client: String) -> Bool {
    guard var consent = consents[person.subject]?[client], consent.isRelayed, consent.forwardsMail != forwards else {
      return false
    }
    consent.forwardsMail = forwards
    consents[person.subject]?[client] = consent
    return true
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
      person: issue.person, access: try self.issue(.access, to: issue.person, client, nil, nil, now),
      refresh: try self.issue(.refresh, to: issue.person, client, nil, nil, now), nonce: issue.nonce)
  }

  /// A new access token for a refresh token, which does not age; nil where it is not good: `invalid_grant`.
  mutating func refresh(_ token: String, by client: String, at now: Timestamp) throws(CryptographyError) -> Tokens? {
    guard let issue = issues[token], issue.kind == .refresh, issue.client == client else { return nil }
    return Tokens(
      person: issue.person, access: try self.issue(.access, to: issue.person, client, nil, nil, now), refresh: nil,
      nonce: nil)
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
    for text in held[person.subject] ?? [] where client == nil || issues[text]?.client == client {
      if client == nil || !keepsCodes || issues[text]?.kind != .code { remove(text) }
    }
    if let client { consents[person.subject]?[client] = nil } else { consents[person.subject] = nil }
    if consents[person.subject]?.isEmpty == true { consents[person.subject] = nil }
    for app in populated.keys where client == nil || app == client { populated[app]?.insert(person.subject) }
  }

  /// The person's refresh tokens for the app that are good.
  func refreshTokens(of person: Person, _ client: String) -> Set<String> {
    (held[person.subject] ?? []).filter { issues[$0]?.kind == .refresh && issues[$0]?.client == client }
  }

  private mutating func issue(
    _ kind: Kind, to person: Person, _ client: String, _ redirectURI: String?, _ nonce: String?, _ now: Timestamp
  ) throws(CryptographyError) -> String {
    let text = try Self.newText(kind)
    issues[text] = Issue(
      kind: kind, person: person, client: client, redirectURI: redirectURI, nonce: nonce, issuedAt: now)
    held[person.subject, default: []].insert(text)
    return text
  }

  /// The text of an access token that stands for nobody.
  static func newAccessToken() throws(CryptographyError) -> String { try newText(.access) }

  private static func newText(_ kind: Kind) throws(CryptographyError) -> String {
    let random = try SecureRandom.bytes(36)
    let hex = SHA256.digest(of: Array(random[..<16])).description.prefix(32)
    let letters = String(random[16..<20].map { Character(Unicode.Scalar(UInt8(ascii: "a") + $0 % 26)) })
    return "\(kind.rawValue)\(hex).0.\(letters).\(Base64URL.encode(Array(random[20...])))"
  }

  private mutating func remove(_ text: String) {
    guard let issue = issues.removeValue(forKey: text) else { return }
    held[issue.person.subject]?.remove(text)
    if held[issue.person.subject]?.isEmpty == true { held[issue.person.subject] = nil }
  }
}
