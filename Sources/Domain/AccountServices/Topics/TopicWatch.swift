import AccountEvents
package import EventLoop
package import Kafka
package import Telemetry

/// Looks now and then, first when the cluster can be asked, whether the topics are as durable as the programs promise, and
/// says what is not. Nobody waits for it: a weaker topic is better than none.
@Loop
package final class TopicWatch {
  /// How often the programs look.
  package static let hourly = Duration.seconds(3600)
  /// Short, because the end of the program waits for a question that is on its way.
  private static let patience = Duration.seconds(2)
  /// How long the cluster is left alone where it could not be asked, or has not all topics yet.
  private static let pause = Duration.seconds(2)

  /// How often a cluster that can be reached may be silent about its topics' settings.
  private static let mostSilences = 5

  private let configuration: KafkaConfiguration
  private let plans: [TopicPlan]
  private let interval: Duration
  private let logger: Logger
  private let weaknesses: Gauge
  /// What was said and still holds.
  private var told: Set<TopicDifference> = []
  private var toldError: KafkaError.Code?

  /// A watch over these topics. `interval` lies between two looks: somebody may change a topic meanwhile.
  package init(
    _ configuration: KafkaConfiguration, _ plans: [TopicPlan], every interval: Duration, registry: MetricsRegistry,
    logger: Logger
  ) {
    (self.configuration, self.plans, self.interval, self.logger) = (configuration, plans, interval, logger)
    weaknesses = registry.gauge(
      "siwa_topic_weaknesses",
      "In how many ways the topics were less durable than they are to be when they were last looked at; the log says which."
    )
  }

  /// Looks until the task is cancelled.
  package func run() async {
    while !Task.isCancelled {
      await look()
      do { try await Loop.sleep(for: interval) } catch { return }
    }
  }

  /// Looks until all topics were there to be looked at, or the task is cancelled.
  package func look() async {
    do throws(KafkaError) {
      let admin = try Admin(configuration, log: { _ in })
      await look(with: admin)
      await admin.close()
    } catch {
      say(error)
    }
  }

  private func look(with admin: Admin) async {
    var silences = 0
    while !Task.isCancelled {
      do throws(KafkaError) {
        if try await isDone(with: admin) { return }
      } catch {
        guard error.code == .brokerUnavailable, silences < Self.mostSilences else { return say(error) }
        // Where it cannot be reached, the service says itself that it is not ready.
        silences = await isReachable(admin) ? silences + 1 : 0
      }
      do { try await Loop.sleep(for: Self.pause) } catch { return }
    }
  }

  private func isReachable(_ admin: Admin) async -> Bool {
    do throws(KafkaError) {
      _ = try await admin.describeTopics(within: Self.patience)
      return true
    } catch {
      return false
    }
  }

  /// Says what is news, and returns whether there is nothing more to look at.
  private func isDone(with admin: Admin) async throws(KafkaError) -> Bool {
    var weak: [TopicDifference] = []
    for plan in plans {
      let state = try await admin.state(of: plan.topic.name, within: Self.patience)
      if Task.isCancelled { return true }
      weak += plan.differences(from: state).filter(\.isWeakness)
    }
    weaknesses.set(Double(weak.count))
    toldError = nil
    told.formIntersection(weak)
    for weakness in weak where told.insert(weakness).inserted {
      logger.warning(
        "a topic is less durable than it is to be",
        [
          "kafka.topic": .string(weakness.topic.name), "topic.aspect": .string(weakness.aspect.rawValue),
          "topic.expected": .string(weakness.expected), "topic.found": .string(weakness.found ?? "nothing"),
        ])
    }
    return !weak.contains { $0.aspect == .existence }
  }

  private func say(_ error: KafkaError) {
    if toldError == error.code { return }
    toldError = error.code
    let metadata: LogMetadata = ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)]
    switch error.code {
    case .unsupported, .brokerUnavailable:
      // The embedded cluster is one.
      logger.info("the cluster does not say how durable its topics are", metadata)
    default:
      logger.warning("nobody can say how durable the topics are", metadata)
    }
  }
}
