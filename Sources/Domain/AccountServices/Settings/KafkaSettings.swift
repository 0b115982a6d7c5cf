package import Configuration
package import Kafka

/// How to reach the cluster: librdkafka's properties under their own names.
package struct KafkaSettings: Configurable, Equatable {
  /// The properties, secrets among them.
  package var properties: Properties

  /// The given properties.
  package init(properties: Properties) { self.properties = properties }

  /// Reads `kafka`; each property is tried on librdkafka itself.
  package init(reading settings: inout Settings) {
    properties = settings.readProperties(
      "kafka", required: ["bootstrap.servers"], isSecret: KafkaConfiguration.isSecret(property:),
      fault: KafkaConfiguration.fault(property:value:),
      "librdkafka's configuration properties, each by its own name; bootstrap.servers is required.")
    for (name, value) in properties.pairs {
      if let warning = KafkaConfiguration.warning(property: name, value: value) {
        settings.warn("kafka.\(name)", warning)
      }
    }
  }

  /// Says what the clients of a program would have against the properties: against one of them, or against the whole.
  func tryOn(_ clients: [KafkaConfiguration.ClientKind], in settings: inout Settings) {
    let configuration: KafkaConfiguration
    // Where one is malformed it has its fault already, and nothing can be said of the whole.
    do throws(KafkaError) { configuration = try self.configuration(of: "siwa") } catch { return }
    if !properties.pairs.contains(where: { $0.0 == "bootstrap.servers" }) { return }
    var told: Set<KafkaConfiguration.Contradiction> = []
    for client in clients {
      for contradiction in configuration.contradictions(to: client) where told.insert(contradiction).inserted {
        settings.refuse("kafka.\(contradiction.property)", contradiction.words)
      }
    }
    guard told.isEmpty else { return }
    var words: Set<String> = []
    for client in clients {
      if let refusal = configuration.refusal(byClient: client), words.insert(refusal).inserted {
        settings.refuse("kafka", refusal)
      }
    }
  }

  /// The configuration for the clients of a program, whose name brokers see unless the properties have another.
  package func configuration(of program: String) throws(KafkaError) -> KafkaConfiguration {
    try KafkaConfiguration(properties: [("client.id", program)] + properties.pairs)
  }
}
