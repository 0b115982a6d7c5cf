package import AccountEvents
package import AccountStore
import Configuration
import EventLoop
import Telemetry

/// `siwa-email-relay`: keeps whether mail to an account may be sent, and answers mailers.
package enum EmailRelayProgram: ConsumerProgram {
  package static let program = "siwa-email-relay"
  package static var consumer: ConsumerName { .emailRelay }
  package static let summary = "Keeps whether mail to an account may be sent, as Apple said last, and answers mailers."
  package static let administrationPort: UInt16 = 9446
  package static var alwaysVerifies: (@Sendable (AccountEvent) -> Bool)? { EmailRelay.isFinal }

  @Loop
  package static func makeConsumer(
    _ own: EmailRelaySettings, in surroundings: ConsumerSurroundings
  ) async throws -> EventConsumer {
    let store = surroundings.store
    let endpoint = RelayEndpoint(
      store, token: own.token.revealed, registry: surroundings.registry, logger: surroundings.logger)
    let server = try EndpointServer(
      own.listen, tls: own.tls, RelayEndpoint.bounds, registry: surroundings.registry, logger: surroundings.logger,
      now: { .now }, handler: { request in await endpoint.respond(to: request) })
    surroundings.logger.info("mailers ask here", ["listen.address": .describing(server.address)])
    surroundings.accompany(run: { await server.run() }, drain: { await server.drain(within: $0) })
    return EmailRelay.consumer(store)
  }
}
