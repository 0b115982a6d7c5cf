/// How to reach a cluster: librdkafka's properties, each by its own name.
///
/// Every property of librdkafka passes, TLS and SASL among them. What each of Producer, Consumer and Admin depends on
/// for its promises may not be contradicted: their initializers say so.
public struct KafkaConfiguration: Sendable, CustomStringConvertible {
  let properties: [(name: String, value: String)]

  /// Checks every property, and throws with all faults in librdkafka's own words.
  public init(properties: [(String, String)]) throws(KafkaError) {
    let faults = properties.compactMap { Self.fault(property: $0.0, value: $0.1) }
    guard faults.isEmpty else {
      throw KafkaError(.invalidConfiguration, detail: faults.joined(separator: "; "))
    }
    self.properties = properties.map { (name: $0.0, value: $0.1) }
  }

  /// What librdkafka has against a property, in its own words; nil if nothing.
  public static func fault(property name: String, value: String) -> String? {
    let scratch = ClientConfiguration()
    return scratch.set(name, value).map { redact($0, secrets: [(name: name, value: value)]) }
  }

  /// A property whose value takes away what a client promises.
  public struct Contradiction: Sendable, Hashable {
    /// The property's name.
    public let property: String
    /// What it can only be, and why.
    public let words: String
  }

  /// The properties that speak against a `Producer` with that deadline: it would refuse them.
  public func contradictions(toProducerWith deadline: Duration) -> [Contradiction] {
    ClientProfile.producer(DeliveryDeadlines(deadline)).contradictions(in: self)
  }

  /// Whether a property's value must never be shown.
  public static func isSecret(property name: String) -> Bool { secrets.contains(name) }

  /// The names of the properties. Not their values: some are secret.
  public var description: String { properties.map(\.name).joined(separator: ", ") }

  /// The words without any secret that was configured.
  func redact(_ words: String) -> String { Self.redact(words, secrets: properties) }

  private static func redact(_ words: String, secrets properties: [(name: String, value: String)]) -> String {
    // librdkafka quotes from the middle of this one on.
    if words.contains("sasl.oauthbearer.config") { return "sasl.oauthbearer.config is malformed" }
    var words = words
    for property in properties where isSecret(property: property.name) && !property.value.isEmpty {
      words = words.replacing(property.value, with: "«redacted»")
    }
    return words
  }

  private static let secrets: Set<String> = [
    "sasl.password", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "ssl.key.password", "ssl.key.pem",
    "ssl.keystore.password",
  ]
}
