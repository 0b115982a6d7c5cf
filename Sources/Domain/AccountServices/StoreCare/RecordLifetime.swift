/// How long records of a topic can be read at most.
package struct RecordLifetime: Sendable, Hashable {
  /// Brokers look now and then, and their clocks are not ours.
  private static let slack = Duration.seconds(86_400)

  /// What the topic is told to keep.
  package let retention: Duration
  /// For how long records come to one segment: that is deleted as a whole, once the last of them is old enough.
  package let segment: Duration

  /// The age at which nothing can be read any more.
  package var end: Duration { retention + segment + Self.slack }

  /// Nil where the topic keeps records without an end, or does not say how long.
  package init?(_ topic: TopicState) {
    guard let policy = topic[.cleanup], policy.split(separator: ",").contains(where: { $0 == "delete" }),
      let retention = topic[.retention].flatMap({ Int64($0) }), retention >= 0,
      let segment = topic.settings["segment.ms"].flatMap({ Int64($0) }), segment >= 0
    else { return nil }
    self.retention = .milliseconds(retention)
    self.segment = .milliseconds(segment)
  }
}
