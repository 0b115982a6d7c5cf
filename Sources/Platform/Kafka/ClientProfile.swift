/// What a kind of client sets by itself: defaults that the user may change, and what its promises depend on.
struct ClientProfile {
  /// A property that must keep its value.
  struct Requirement {
    /// The property and its other names.
    let names: [String]
    /// The value; nil leaves the property unset.
    let value: String?
    /// Why, in words for the user.
    let reason: String
  }

  /// A number that must not be set too low.
  struct Minimum {
    let name: String
    let value: Int
    /// Why, in words for the user.
    let reason: String
  }

  var defaults: [(name: String, value: String)]
  var requirements: [Requirement]
  var minima: [Minimum] = []

  /// Log lines go to the caller's closure, which librdkafka's log queue would take them from.
  static let log = Requirement(
    names: ["log.queue"], value: "false", reason: "log lines go to the program's own log")

  /// librdkafka's producers ask brokers to make a topic that they ask for, and a stock broker does: with one partition,
  /// one copy, and records that are deleted after a week.
  static let noTopics = Requirement(
    names: ["allow.auto.create.topics"], value: "false",
    reason: "a broker would make topics that do not keep what is promised: 'siwa topics create' makes them")

  /// A client that does not see a topic knows nothing of it, and says nothing.
  static let allTopics = Requirement(
    names: ["topic.blacklist"], value: nil, reason: "the program's topics would seem not to be there")

  /// With -1 or 0, librdkafka never refreshes what it knows.
  static let newPartitions = Minimum(
    name: "topic.metadata.refresh.interval.ms", value: 1,
    reason: "nobody would see partitions that are added, nor where a partition has gone")

  /// A configuration with all of it, or what speaks against it.
  func apply(_ configuration: KafkaConfiguration) throws(KafkaError) -> ClientConfiguration {
    let result = ClientConfiguration()
    for (name, value) in defaults + configuration.properties {
      if let words = result.set(name, value) {
        throw KafkaError(.invalidConfiguration, detail: configuration.redact(words))
      }
    }
    var faults = contradictions(in: configuration, result).map { "\($0.property) \($0.words)" }
    if (result["bootstrap.servers"] ?? "").isEmpty, (result["test.mock.num.brokers"] ?? "0") == "0" {
      faults.append("bootstrap.servers is missing")
    }
    guard faults.isEmpty else {
      throw KafkaError(.invalidConfiguration, detail: faults.joined(separator: "; "))
    }
    for requirement in requirements {
      guard let value = requirement.value else { continue }
      if let words = result.set(requirement.names[0], value) {
        throw KafkaError(.invalidConfiguration, detail: configuration.redact(words))
      }
    }
    return result
  }

  /// The properties that contradict what the client depends on.
  func contradictions(in configuration: KafkaConfiguration) -> [KafkaConfiguration.Contradiction] {
    let result = ClientConfiguration()
    // One that librdkafka refuses has its fault already.
    for (name, value) in defaults + configuration.properties { _ = result.set(name, value) }
    return contradictions(in: configuration, result)
  }

  private func contradictions(
    in configuration: KafkaConfiguration, _ result: borrowing ClientConfiguration
  ) -> [KafkaConfiguration.Contradiction] {
    var contradictions: [KafkaConfiguration.Contradiction] = []
    for requirement in requirements {
      guard result[requirement.names[0]] != requirement.canonicalValue else { continue }
      for name in requirement.names where configuration.names(name) {
        contradictions.append(
          .init(
            property: name,
            words: "cannot be set to anything but \(requirement.value ?? "nothing"): \(requirement.reason)"))
      }
    }
    for minimum in minima where configuration.names(minimum.name) {
      guard let value = result[minimum.name].flatMap({ Int($0) }), value < minimum.value else { continue }
      contradictions.append(
        .init(property: minimum.name, words: "cannot be less than \(minimum.value): \(minimum.reason)"))
    }
    if let missing = configuration.missingToken(result["sasl.mechanisms"]) { contradictions.append(missing) }
    return contradictions
  }
}

extension ClientProfile.Requirement {
  /// The value as librdkafka writes it: some have several names.
  fileprivate var canonicalValue: String? {
    guard let value else { return nil }
    let scratch = ClientConfiguration()
    _ = scratch.set(names[0], value)
    return scratch[names[0]]
  }
}

extension KafkaConfiguration {
  func names(_ property: String) -> Bool { properties.contains { $0.name == property } }
}
