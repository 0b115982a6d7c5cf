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
  }

  /// The properties that a producer would refuse; none where one is malformed, which has its fault already.
  func contradictions(toProducerWith deadline: Duration) -> [KafkaConfiguration.Contradiction] {
    do throws(KafkaError) {
      return try configuration().contradictions(toProducerWith: deadline)
    } catch {
      return []
    }
  }

  /// The configuration for clients.
  package func configuration() throws(KafkaError) -> KafkaConfiguration {
    try KafkaConfiguration(properties: properties.pairs)
  }
}
