package import AccountEvents
package import Configuration
package import HTTPClient
import PostgreSQL

/// What is erased where, and when: the operator's declaration.
package struct ErasureSettings: Configurable, Sendable {
  /// A target as it was declared.
  package enum Target: Sendable {
    /// An SQLite database, whose foreign keys are enforced or not.
    case sqlite(path: String, SQLStatements, foreignKeys: Bool)
    /// A PostgreSQL database, by libpq's connection string, whose row-level security may hide rows or not.
    case postgresql(connection: Secret, SQLStatements, rowSecurity: Bool)
    /// A service.
    case service(url: HTTPClientURL, secret: WebhookSecret, deadline: Duration)
    /// Compacted topics.
    case topics([String], key: Tombstones.Key)
    /// Data that stays.
    case retention(ground: String, until: String)
  }

  /// Which targets an event leads to, in their order.
  package struct Policy: Sendable, Hashable {
    /// Where the person withdrew consent.
    package var consentRevoked: [String]
    /// Where the Apple Account was deleted, or the person asked the app to delete the account.
    package var accountDelete: [String]

    /// A policy from its parts.
    package init(consentRevoked: [String], accountDelete: [String]) {
      (self.consentRevoked, self.accountDelete) = (consentRevoked, accountDelete)
    }
  }

  /// The name that stands for what the account store itself keeps.
  package static let accountStore = "account-store"

  /// The targets in the order of their declaration.
  package var targets: [(name: String, target: Target)]
  /// The policy of each team.
  package var policies: [TeamID: Policy]
  /// How long an erasure waits for the token revoker where Apple has ended the tokens.
  package var patience: Duration
  /// Which apps share a person's consent, and so the tokens that it waits for.
  package var groups: ConsentGroups

  /// Everything said, nothing assumed.
  package init(
    targets: [(name: String, target: Target)], policies: [TeamID: Policy], patience: Duration, groups: ConsentGroups
  ) {
    (self.targets, self.policies, self.patience, self.groups) = (targets, policies, patience, groups)
  }

  /// Reads `data-eraser.targets` and `teams.TEAM.erase`.
  package init(reading settings: inout Settings) {
    let declared = settings.readEach("data-eraser.targets", .targetName, named: "NAME") { settings, path, name in
      Target(reading: &settings, at: path, named: name)
    }
    targets = declared.compactMap { name, target in target.map { (name, $0) } }
    // One that has a fault of its own is declared all the same.
    let names = declared.map(\.key)
    patience = settings.read(
      "data-eraser.revoker-patience", .duration(.zero ... .seconds(7 * 86_400)), default: .seconds(900),
      "How long consent-revoked and account-delete wait for the token revoker; Apple has ended the tokens by then. A deletion that the app was asked for waits until they are revoked."
    )
    policies = [:]
    for (team, policy) in settings.readEach(
      "teams", .teamID, named: "TEAM",
      { settings, path, _ in Policy(reading: &settings, at: path, among: names) })
    {
      policies[team] = policy
    }
    groups = ConsentGroups(reading: &settings)
    let divided = Set(groups.named.map(\.team))
    let retained = targets.filter { if case .retention = $0.target { true } else { false } }.map(\.name)
    let topics = targets.filter { if case .topics = $0.target { true } else { false } }.map(\.name)
    for (team, policy) in policies.sorted(by: { $0.key.text < $1.key.text }) {
      let path = "teams.\(team).erase.consent-revoked"
      if divided.contains(team) {
        if policy.consentRevoked.contains(Self.accountStore) {
          settings.refuse(path, "\(Self.accountStore) holds what other groups of the team have consent for")
        }
        let erasing = policy.consentRevoked.filter { $0 != Self.accountStore && !retained.contains($0) }
          .joined(separator: ", ")
        if !erasing.isEmpty {
          settings.warn(
            path, "targets know no apps: what these have of the person's other groups goes, too: \(erasing)")
        }
      }
      if let target = policy.consentRevoked.first(where: topics.contains) {
        settings.warn(path, "\(target) has topics: a tombstone that is late takes away what was written since, too")
      }
    }
  }
}

extension ErasureSettings.Policy {
  fileprivate init(reading settings: inout Settings, at path: String, among names: [String]) {
    let all = names + [ErasureSettings.accountStore]
    let type = SettingType.list(of: SettingType<String>.targetName, count: 0...100)
    let consentRevoked = settings.read(
      "\(path).erase.consent-revoked", type,
      "What is erased where a person of the team TEAM withdraws consent: targets, account-store, or [] for nothing.")
    let accountDelete = settings.readIfPresent(
      "\(path).erase.account-delete", type,
      "What is erased where the Apple Account is deleted or the app was asked to; all targets unless it is set.")
    for (member, list) in [("consent-revoked", consentRevoked), ("account-delete", accountDelete ?? [])] {
      if let unknown = list.first(where: { !all.contains($0) }) {
        settings.refuse("\(path).erase.\(member)", "\(unknown) is none of the targets: \(all.joined(separator: ", "))")
      }
      if Set(list).count < list.count { settings.refuse("\(path).erase.\(member)", "a target stands there twice") }
    }
    // What happened before a deletion is void, as the deletion erases it, too.
    if let accountDelete,
      let missing = consentRevoked.first(where: {
        all.contains($0) && !(accountDelete + [ErasureSettings.accountStore]).contains($0)
      })
    {
      settings.refuse(
        "\(path).erase.account-delete", "\(missing) is missing, which consent-revoked names: a deletion erases it, too")
    }
    // In the order in which they are declared, the store last: it knows whom all others are still to erase.
    func inOrder(_ list: [String]) -> [String] { all.filter(list.contains) }
    // What the store keeps goes with an account in any case.
    self.init(
      consentRevoked: inOrder(consentRevoked),
      accountDelete: inOrder((accountDelete ?? names) + [ErasureSettings.accountStore]))
  }
}

extension ErasureSettings.Target {
  /// Nil where no kind of target was declared: there is a fault then.
  fileprivate init?(reading settings: inout Settings, at path: String, named name: String) {
    let sqlite = settings.readIfPresent("\(path).sqlite", .path, "The file of an SQLite database to erase from.")
    let postgresql = settings.readIfPresent(
      "\(path).postgresql", .secret, "A PostgreSQL database to erase from: libpq's connection string.")
    let url = settings.readIfPresent(
      "\(path).url", .httpURL, "A service that erases: it is sent signed requests (Standard Webhooks).")
    let topics = settings.readIfPresent(
      "\(path).topics", .list(of: .text(1...249), count: 1...100), "Compacted topics that get a tombstone.")
    let ground = settings.readIfPresent(
      "\(path).retain", .text(1...200), "The legal ground on which data stays: it is named, and not erased.")
    let statements = SQLStatements(reading: &settings, at: path, isNeeded: sqlite != nil || postgresql != nil)
    let foreignKeys = settings.read(
      "\(path).foreign-keys", .boolean, default: false,
      "Whether the SQLite database's foreign keys are enforced and its cascades followed, as after PRAGMA foreign_keys = ON."
    )
    let rowSecurity = settings.read(
      "\(path).row-security", .boolean, default: false,
      "Whether PostgreSQL's row-level security may hide rows from the statements, which count as erased then. Only where its policies show the role every row of a person; otherwise the server refuses a statement that a policy applies to."
    )
    let secret = settings.readIfPresent(
      "\(path).secret", .secret, "The secret shared with the service: whsec_ and 24 to 64 bytes in base64.")
    let deadline = settings.read(
      "\(path).deadline", .duration(.milliseconds(100) ... .seconds(300)), default: .seconds(10),
      "How long one request to the service may take.")
    let key = settings.read(
      "\(path).key", .choice(Tombstones.Key.self), default: .account,
      "What the records of the topics have as their key.")
    let until = settings.readIfPresent("\(path).until", .date, "The day until which the data stays.")

    switch (sqlite, postgresql, url, topics, ground) {
    case (let file?, nil, nil, nil, nil): self = .sqlite(path: file, statements, foreignKeys: foreignKeys)
    case (nil, let connection?, nil, nil, nil):
      for weakness in PostgreSQLConfiguration.weaknesses(of: connection.revealed) {
        settings.warn("\(path).postgresql", weakness)
      }
      self = .postgresql(connection: connection, statements, rowSecurity: rowSecurity)
    case (nil, nil, let url?, nil, nil):
      guard let secret = secret.flatMap({ WebhookSecret($0.revealed) }) else {
        settings.refuse("\(path).secret", "missing, or not whsec_ and 24 to 64 bytes in base64")
        return nil
      }
      self = .service(url: url, secret: secret, deadline: deadline)
    case (nil, nil, nil, let topics?, nil): self = .topics(topics, key: key)
    case (nil, nil, nil, nil, let ground?):
      guard let until else {
        settings.refuse("\(path).until", "missing; the day until which the data stays, such as 2036-12-31")
        return nil
      }
      self = .retention(ground: ground, until: until)
    default:
      settings.refuse(path, "expected exactly one of sqlite, postgresql, url, topics and retain")
      return nil
    }
  }
}

extension SQLStatements {
  fileprivate init(reading settings: inout Settings, at path: String, isNeeded: Bool) {
    func statement(_ member: String, _ help: String) -> String? {
      settings.readIfPresent("\(path).\(member)", .text(1...8192), help)
    }
    let count = statement(
      "count", "SQL that counts what there is of an account: $1 is the subject, $2 the team, $3 the event's time in ms."
    )
    let erase = settings.readIfPresent(
      "\(path).erase", .list(of: .text(1...8192), count: 1...50),
      "SQL that erases it, run in one transaction; in a variable without commas, which end a statement there.")
    let find = statement("find", "SQL that looks for it afterwards, in another way than count if possible.")
    for (member, isThere) in [("count", count != nil), ("erase", erase != nil), ("find", find != nil)]
    where isNeeded && !isThere {
      settings.refuse("\(path).\(member)", "missing; SQL with $1 for the subject and $2 for the team")
    }
    self.init(count: count ?? "", erase: erase ?? [], find: find ?? "")
  }
}

extension SettingType where Value == String {
  /// How targets are named: in outcomes and in the ids of webhooks.
  fileprivate static var targetName: SettingType {
    SettingType(
      "name", expected: "a name of 1 to 40 small letters, digits and hyphens", standIn: "shop", show: { $0 },
      parse: { text in
        1...40 ~= text.utf8.count
          && text.utf8.allSatisfy { 0x61...0x7a ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x2d } ? text : nil
      })
  }

  /// A day of the calendar in ISO 8601's form.
  fileprivate static var date: SettingType {
    SettingType(
      "date", expected: "a date such as 2036-12-31", standIn: "2036-12-31", show: { $0 },
      parse: { text in
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [4, 2, 2], parts.allSatisfy({ $0.utf8.allSatisfy { 0x30...0x39 ~= $0 } }),
          let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2]), 1...12 ~= month
        else { return nil }
        let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return 1...days[month - 1] ~= day ? text : nil
      })
  }
}
