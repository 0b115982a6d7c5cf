package import AccountEvents
package import AccountStore
package import AppleID
package import EventLoop

extension TransferApple {
  /// Apple as the configuration has it, asked for our side of the plan by so many at once; and for the other team, where its
  /// key is configured, too.
  @Loop
  package init(
    _ configuration: MigrationConfiguration, of plan: TransferPlan, concurrency: Int, userAgent: String,
    now: @escaping @Sendable () -> Timestamp
  ) {
    func endpoint(_ team: TeamID, _ concurrency: Int) -> AppleMigrationEndpoint {
      AppleMigrationEndpoint(
        configuration.apple, teams: configuration.teams, team: team, client: plan.client, concurrency: concurrency,
        userAgent: userAgent, now: now)
    }
    let own = endpoint(plan.team, concurrency)
    let (target, client) = (plan.otherTeam, plan.client)
    switch plan.side {
    case .sending:
      var wayBack: WayBack?
      if configuration.teams.keys[target] != nil {
        let other = endpoint(target, 1)
        wayBack = { identifier throws(AppleTokenError) in try await other.account(of: identifier, by: client) != nil }
      }
      self.init(
        { user throws(AppleTokenError) in
          guard let subject = user.subject else { return .refused(.damaged) }
          let identifier = try await own.identifier(of: subject, to: target, by: client)
          return identifier.map { .identifier($0) } ?? .refused(.consentWithdrawn)
        },
        wayBack: wayBack)
    case .receiving:
      self.init({ user throws(AppleTokenError) in
        guard let identifier = user.transferSubject else { return .refused(.damaged) }
        guard let account = try await own.account(of: identifier, by: client) else {
          return .refused(.consentWithdrawn)
        }
        return .account(account.subject, address: account.address, isPrivate: account.isPrivate)
      })
    }
  }
}

extension MigrationConfiguration {
  /// Whether Apple takes the key of the plan's team for the app: throws what it says instead. Nobody is asked about.
  @Loop
  package func tryKey(
    of plan: TransferPlan, userAgent: String, now: @escaping @Sendable () -> Timestamp
  ) async throws(AppleTokenError) {
    let endpoint = AppleMigrationEndpoint(
      apple, teams: teams, team: plan.team, client: plan.client, concurrency: 1, userAgent: userAgent, now: now)
    try await endpoint.authorize(as: plan.client)
  }

  /// What Apple says of the key of a team in the name of another of its apps than the plan's. Of a wrong key, a wrong team and
  /// a wrong app Apple says the same; where it takes the key for another app, the app is wrong. Nil where the team has no other
  /// one, or Apple does not say.
  @Loop
  package func wordsOfAnotherApp(
    of team: TeamID, than plan: TransferPlan, userAgent: String, now: @escaping @Sendable () -> Timestamp
  ) async -> String? {
    let others = teams.teams.filter { $0.value == team && $0.key != plan.client }.keys
    guard let other = others.min(by: { $0.text < $1.text }) else { return nil }
    let endpoint = AppleMigrationEndpoint(
      apple, teams: teams, team: team, client: other, concurrency: 1, userAgent: userAgent, now: now)
    do throws(AppleTokenError) {
      try await endpoint.authorize(as: other)
    } catch {
      switch error.code {
      case .invalidClient:
        return "Apple does not take the key of \(team) for \(other) either: so it is rather the key or the team"
      // What the app may do it looks at once it knows who asks.
      case .unauthorizedClient, .invalidScope, .forbidden, .invalidRequest: break
      default: return nil
      }
    }
    return "Apple takes the key of \(team) for \(other): so it is the app, \(plan.client), that is wrong"
  }
}
