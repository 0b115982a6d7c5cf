import CLibrdkafka

/// How to reach a cluster: librdkafka's properties, each by its own name.
///
/// Every property of librdkafka passes, TLS and SASL among them. What each of Producer, Consumer and Admin depends on
/// for its promises may not be contradicted: their initializers say so. One property is not librdkafka's:
/// `sasl.oauthbearer.token.file` names the file of the token for SASL/OAUTHBEARER, which is read again every minute.
public struct KafkaConfiguration: Sendable, CustomStringConvertible {
  let properties: [(name: String, value: String)]
  /// Where the token for SASL/OAUTHBEARER stands.
  let tokenFile: String?

  /// Checks every property, and throws with all faults in librdkafka's own words.
  public init(properties: [(String, String)]) throws(KafkaError) {
    let faults = properties.compactMap { Self.fault(property: $0.0, value: $0.1) }
    guard faults.isEmpty else {
      throw KafkaError(.invalidConfiguration, detail: faults.joined(separator: "; "))
    }
    self.properties = properties.filter { $0.0 != OAuthBearerToken.property }.map { (name: $0.0, value: $0.1) }
    tokenFile = properties.last { $0.0 == OAuthBearerToken.property }?.1
  }

  /// The same, with these values of properties that are not set here. Throws as the initializer does.
  public func with(defaults: [(String, String)]) throws(KafkaError) -> KafkaConfiguration {
    let token = tokenFile.map { [(OAuthBearerToken.property, $0)] } ?? []
    return try KafkaConfiguration(properties: defaults + properties.map { ($0.name, $0.value) } + token)
  }

  /// The same, with these values of properties, whatever they are here. Throws as the initializer does.
  public func with(_ values: [(String, String)]) throws(KafkaError) -> KafkaConfiguration {
    let names = Set(values.map(\.0))
    let token = tokenFile.map { [(OAuthBearerToken.property, $0)] } ?? []
    let rest = properties.filter { !names.contains($0.name) }.map { ($0.name, $0.value) }
    return try KafkaConfiguration(properties: rest + values + token)
  }

  /// What librdkafka has against a property, in its own words; nil if nothing.
  public static func fault(property name: String, value: String) -> String? {
    if name == OAuthBearerToken.property { return OAuthBearerToken.fault(inFile: value) }
    let scratch = ClientConfiguration()
    return scratch.set(name, value).map { redact($0, secrets: [(name: name, value: value)]) }
  }

  /// What the user may not expect of a property that works; nil if nothing.
  public static func warning(property name: String, value: String) -> String? {
    guard ["sasl.mechanism", "sasl.mechanisms"].contains(name), value.uppercased().hasPrefix("SCRAM-"),
      rd_kafka_version() < 0x0206_00ff
    else { return nil }
    let version = unsafe String(cString: rd_kafka_version_str())
    return """
      librdkafka \(version) sends the nonce of SCRAM twice, and brokers refuse that from Apache Kafka 3.7.2, 3.8.1 and 3.9 \
      on: librdkafka 2.6 is needed, or another mechanism
      """
  }

  /// A property whose value takes away what a client promises.
  public struct Contradiction: Sendable, Hashable {
    /// The property's name.
    public let property: String
    /// What it can only be, and why.
    public let words: String
  }

  /// A kind of client.
  public enum ClientKind: Sendable {
    /// A `Producer` with that deadline.
    case producer(deadline: Duration)
    /// A `Consumer`, in a group or in none.
    case consumer(GroupMembership?)
    /// An `Admin`.
    case admin

    fileprivate var profile: ClientProfile {
      switch self {
      case .producer(let deadline): .producer(DeliveryDeadlines(deadline))
      case .consumer(let membership): .consumer(membership)
      case .admin: .admin
      }
    }
  }

  /// The properties that speak against such a client: it would refuse them.
  public func contradictions(to client: ClientKind) -> [Contradiction] {
    client.profile.contradictions(in: self)
  }

  /// What librdkafka has against the properties as a whole, in its own words; nil if nothing.
  ///
  /// Makes such a client, without any broker to connect to, and ends it: a certificate authority that is missing, a key
  /// that is not its certificate's, a mechanism without what it needs. Blocks for some milliseconds.
  public func refusal(byClient client: ClientKind) -> String? {
    do throws(KafkaError) {
      let settings = try client.profile.apply(self)
      unsafe rd_kafka_conf_set_log_cb(settings.pointer) { _, _, _, _ in }
      OAuthBearerToken.prepare(settings, for: self)
      // Spelt as nothing, so that nobody is asked.
      for name in ["bootstrap.servers", "metadata.broker.list"] { _ = settings.set(name, "") }
      var words = [CChar](repeating: 0, count: 512)
      let type = if case .consumer = client { RD_KAFKA_CONSUMER } else { RD_KAFKA_PRODUCER }
      // librdkafka owns the configuration from here on success only.
      let conf = unsafe settings.release()
      guard let handle = unsafe rd_kafka_new(type, conf, &words, words.count) else {
        unsafe rd_kafka_conf_destroy(conf)
        return redact(String(terminated: words))
      }
      unsafe rd_kafka_destroy(handle)
      return nil
    } catch {
      return error.detail
    }
  }

  /// What is missing for SASL/OAUTHBEARER: librdkafka of Debian cannot fetch tokens, so they come from a file.
  func missingToken(_ mechanism: String?) -> Contradiction? {
    guard mechanism?.uppercased() == "OAUTHBEARER", tokenFile == nil, !names("enable.sasl.oauthbearer.unsecure.jwt"),
      let name = ["sasl.mechanisms", "sasl.mechanism"].first(where: names)
    else { return nil }
    return Contradiction(
      property: name, words: "cannot be OAUTHBEARER without \(OAuthBearerToken.property), the file that holds the token"
    )
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
