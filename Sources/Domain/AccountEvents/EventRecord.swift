/// The exact bytes of one record: what is published is what anyone else reads, in whatever language.
///
/// CloudEvents 1.0 in Kafka's binary mode: the attributes are headers (`ce_id`, `ce_type`, …), the value is the data
/// alone, as JSON, which `AccountEvent.init(decoding:)` reads. `schemas/` describes both.
public struct EventRecord: Sendable, Hashable {
  /// Where the record belongs.
  public let topic: Topic
  /// `team/sub`, which keeps the events of one account in order. Of a quarantined event: `QuarantinedEvent.key`; of a
  /// signing key: its `kid`; of an outcome: the account's keyed hash.
  public let key: [UInt8]?
  /// The data: one JSON object.
  public let value: [UInt8]
  /// The attributes of CloudEvents, and what is ours beside them.
  public let headers: [Header]

  /// A record that was made before: one that was kept on its way.
  package init(topic: Topic, key: [UInt8]?, value: [UInt8], headers: [Header]) {
    (self.topic, self.key, self.value, self.headers) = (topic, key, value, headers)
  }

  /// A header of a record.
  public struct Header: Sendable, Hashable {
    /// ASCII, in lower case.
    public let name: String
    /// UTF-8 text in all headers that are written here.
    public let value: [UInt8]

    /// A header as read or to be written.
    public init(name: String, value: [UInt8]) { (self.name, self.value) = (name, value) }
  }

  /// The header that holds the notification as Apple signed it, so that anyone can verify it again.
  public static let signatureHeader = "apple-jws"
  /// The header that says which operator has asked for a deletion.
  public static let requestedByHeader = "requested-by"
  /// The header that says why an operator has asked for a deletion.
  public static let requestReasonHeader = "request-reason"
  /// The header of a deletion that was asked for: a code over the event, who asked and why, which needs the key of the
  /// account store.
  public static let requestCodeHeader = "request-code"
  /// The header that says why a record stands in quarantine: a `QuarantinedEvent.Reason`.
  public static let reasonHeader = "quarantine-reason"
}
