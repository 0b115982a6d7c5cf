package import AccountEvents
package import AccountStore
import AppleID
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
