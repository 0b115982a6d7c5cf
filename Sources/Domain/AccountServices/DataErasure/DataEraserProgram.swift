import AccountEvents
package import AccountStore
import EventLoop
import Kafka
import Telemetry

/// `siwa-data-eraser`: erases people from what the operator declared.
package enum DataEraserProgram: ConsumerProgram {
  package static let program = "siwa-data-eraser"
  package static var consumer: ConsumerName { .dataEraser }
  package static let summary = "Erases a person from every place that the operator declared, and proves each."
  package static let administrationPort: UInt16 = 9445
  package static let verifies = true

  @Loop
  package static func makeConsumer(
    _ own: ErasureSettings, in surroundings: ConsumerSurroundings
  ) async throws -> EventConsumer {
    let targets = try Erasures.makeTargets(own.targets, kafka: surroundings.kafka, logger: surroundings.logger)
    // Each beside the others and what follows: one that hangs holds up neither them nor the erasures of all.
    for (name, target) in targets {
      Task(executorPreference: Loop.executor) { await look(at: target, named: name, logger: surroundings.logger) }
    }
    let watch = ErasureWatch(surroundings.store, registry: surroundings.registry, logger: surroundings.logger)
    surroundings.accompany(run: { await watch.run() }, drain: { _ in watch.end() })
    let erasures = Erasures(
      targets, store: surroundings.store, concurrency: surroundings.concurrency, registry: surroundings.registry,
      logger: surroundings.logger, now: { .now }, clock: { .now }, random: { Double.random(in: 0...1) })
    var groups = own.groups
    groups.teams = surroundings.teams
    return DataEraser(
      own.policies, erasures, groups: groups, patience: own.patience, store: surroundings.store, now: { .now }
    ).consumer
  }

  /// Says where a target could not be used now. It may be there when it is needed; a person who waits for an erasure must
  /// not be the first to find out.
  @Loop
  private static func look(at target: any ErasureTarget, named name: String, logger: Logger) async {
    do throws(ErasureFailure) {
      try await target.check()
    } catch {
      logger.error(
        "an erasure target could not be used now", ["erasure.target": .string(name), "cause": .describing(error)])
    }
  }
}
