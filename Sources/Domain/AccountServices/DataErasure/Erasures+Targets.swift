import AccountEvents
import EventLoop
import HTTPClient
package import Kafka
package import Telemetry

extension Erasures {
  /// The targets as they were declared, in their order. None of them is asked yet.
  package static func makeTargets(
    _ targets: [(name: String, target: ErasureSettings.Target)], kafka: KafkaConfiguration, logger: Logger
  ) throws(KafkaError) -> [NamedTarget] {
    var tombstones: (producer: RenewableProducer, admin: Admin)?
    var client: HTTPClient?
    var made: [NamedTarget] = []
    for (name, target) in targets {
      switch target {
      case .sqlite(let path, let statements, let foreignKeys):
        let target = SQLiteTarget(
          path: path, statements: statements, foreignKeys: foreignKeys, statementTimeout: .seconds(60))
        made.append((name, target))
      case .postgresql(let connection, let statements, let rowSecurity):
        let target = PostgreSQLTarget(
          connection: connection, statements: statements, rowSecurity: rowSecurity, logger: logger)
        made.append((name, target))
      case .service(let url, let secret, let deadline):
        let shared = client ?? .forServices()
        client = shared
        made.append(
          (name, HTTPTarget(name: name, url: url, secret: secret, deadline: deadline, client: shared, now: { .now })))
      case .topics(let topics, let key):
        if tombstones == nil {
          tombstones = (
            try RenewableProducer { () throws(KafkaError) in
              try Producer(kafka, deadline: .seconds(30), log: logger.forKafka)
            },
            try Admin(kafka, log: logger.forKafka)
          )
        }
        guard let (producer, admin) = tombstones else { continue }
        made.append((name, Tombstones(topics: topics, key: key, producer: producer, admin: admin)))
      case .retention(let ground, let until): made.append((name, Retention(ground: ground, until: until)))
      }
    }
    return made
  }
}

extension HTTPClient {
  /// A client for the operator's own services.
  @Loop
  fileprivate static func forServices() -> HTTPClient {
    HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-data-eraser", trustAnchors: .system, proxy: .environment, connectTimeout: .seconds(10),
        maximumConnections: 32, maximumRequests: 1024))
  }
}
