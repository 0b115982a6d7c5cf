import AccountEvents
package import AccountStore
import AppleID
import EventLoop

/// `siwa-token-revoker`: ends tokens, at Apple too where the deletion began with us.
package enum TokenRevokerProgram: ConsumerProgram {
  package static let program = "siwa-token-revoker"
  package static var consumer: ConsumerName { .tokenRevoker }
  package static let summary = "Ends the tokens of who has gone, at Apple too where that began with us, and proves it."
  package static let administrationPort: UInt16 = 9444
  package static let verifies = true
  package static let explanation = """
    consent-revoked, account-delete: Apple says that it is over. The tokens issued until then are deleted, after
    consent-revoked those of the apps that share consent (teams.TEAM.groups); Apple is not asked.
    credential-invalid: siwa-accounts has found the same itself, as of the sign-in that is over.
    account-deletion-requested: each app's authorization is revoked at Apple in that app's name, and then its refresh
    tokens must turn out invalid; while one does not, nothing is said and it is tried again. Whoever has signed in since
    then keeps that sign-in's tokens.
    On apple.account-outcomes.v1 stands sessions-ended, and tokens-revoked, or no-token, or revocation-unproven where there
    was an access token alone. After the last two, tell the person how to end it in the settings of their Apple Account.
    While Apple cannot be reached, or does not accept a team's key, events wait. Alarm on
    siwa_consumer_oldest_unprocessed_seconds, and on siwa_consumer_retrying with the cause apple-invalid-client.
    """

  @Loop
  package static func makeConsumer(
    _ own: TokenRevokerSettings, in surroundings: ConsumerSurroundings
  ) async throws -> EventConsumer {
    let endpoints = AppleTokenEndpoints(
      own.apple, teams: own.teams, concurrency: surroundings.concurrency, userAgent: program, now: { .now },
      takeovers: KeyTakeovers(own.teams, registry: surroundings.registry, logger: surroundings.logger))
    let apple = AppleRevocations(
      endpoints, clock: { .now }, random: { Double.random(in: 0...1) }, logger: surroundings.logger)
    return TokenRevoker(apple, own.groups, store: surroundings.store).consumer
  }
}
