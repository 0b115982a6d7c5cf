package import AccountEvents
package import EventLoop
package import Kafka
package import Telemetry

/// Reads the audited topics, all partitions of them, from where the log is: without a group, so that nothing but the log
/// says how far it is.
///
/// Each partition's records are compared with each other and, from time to time, with what the cluster says it holds:
/// what is missing or begins anew becomes a gap. Partitions and topics that come later are read from their beginning.
@Loop
package final class AuditReader {
  /// What was read, in its order, and where the partitions are to be read on once that is in the log.
  package struct Batch: Sendable {
    /// A step of it.
    package enum Step: Sendable {
      /// A record.
      case record(ConsumedRecord, AuditedTopic)
      /// Records that are not there.
      case gap(AuditEntry.Gap)
    }

    /// The steps.
    package var steps: [Step] = []
    /// Where each partition that was touched is to be read on.
    package var positions: [TopicPartition: CommittedOffset] = [:]

    /// Nothing read.
    package init() {}
  }

  /// How often the cluster is asked what there is.
  package static let surveyPause = Duration.seconds(10)
  private static let surveyLimit = Duration.seconds(5)
  private static let mostRecords = 1024

  private let source: any PartitionSource
  private let surveyPause: Duration
  private let now: () -> Timestamp
  private let logger: Logger
  private let metrics: AuditMetrics
  /// The partitions that are read, and how far.
  private var places: [TopicPartition: PartitionContinuity] = [:]
  /// Where partitions ended when the cluster was asked last.
  private var ends: [TopicPartition: Int64] = [:]
  /// Where the log is in partitions that are not read yet.
  private var known: [TopicPartition: CommittedOffset]
  /// Partitions of which a record came that had come before.
  private var suspects: Set<TopicPartition> = []
  private var nextSurvey = MonotonicTime.now
  /// Why the cluster did not say what there is when it was asked last; nil where it did.
  package private(set) var silence: KafkaError?

  /// A reader that goes on at `positions`, and in partitions that are not among them at their beginning. `pause` lies
  /// between two surveys.
  package init(
    _ source: any PartitionSource, from positions: [TopicPartition: CommittedOffset], surveyingEvery pause: Duration,
    now: @escaping () -> Timestamp, metrics: AuditMetrics, logger: Logger
  ) {
    (self.source, known, surveyPause, self.now) = (source, positions, pause, now)
    (self.metrics, self.logger) = (metrics, logger)
    metrics.lag = { [weak self] topic in self?.lag(of: topic) ?? 0 }
  }

  /// What comes next; nothing where that is nothing yet. Throws where nothing can be read at all.
  package func next() async throws(KafkaError) -> Batch {
    var batch = Batch()
    if nextSurvey <= .now || !suspects.isEmpty { try await survey(&batch) }
    guard batch.steps.isEmpty else { return batch }
    for record in try await source.next(upTo: Self.mostRecords, until: nextSurvey) { follow(record, &batch) }
    return batch
  }

  /// Whether all is read that the cluster held when it was asked last, which it was not in vain.
  ///
  /// Of compacted topics nobody knows whether there is a record before their end: they do not count.
  package var hasReadAll: Bool {
    silence == nil && !places.isEmpty
      && places.allSatisfy { place, continuity in
        guard let next = continuity.next, let end = ends[place] else { return false }
        return next >= end || AuditedTopic.named(place.topic)?.isCompacted ?? true
      }
  }

  /// How many records of a topic are not read yet, as far as is known.
  package func lag(of topic: AuditedTopic) -> Int64 {
    places.reduce(0) { sum, place in
      guard place.key.topic == topic.topic.name, let end = source.knownEnd(of: place.key) else { return sum }
      return sum + max(0, end - (place.value.next ?? end))
    }
  }

  // MARK: Records

  private func follow(_ record: ConsumedRecord, _ batch: inout Batch) {
    let place = TopicPartition(record.topic, record.position.partition)
    guard var continuity = places[place], let topic = AuditedTopic.named(record.topic) else { return }
    if let next = continuity.next, record.position.offset < next { suspects.insert(place) }
    // The cluster is asked first whether the partition has begun anew.
    if suspects.contains(place) { return }
    if case .missing(let range) = continuity.read(record.position.offset, time: record.timestamp), !topic.isCompacted {
      note(.missing, of: place, from: range.lowerBound, to: range.upperBound, &batch)
    }
    places[place] = continuity
    batch.steps.append(.record(record, topic))
    batch.positions[place] = CommittedOffset(record.position.offset + 1, note: continuity.note)
  }

  // MARK: What there is

  /// Asks which partitions there are and what they hold, and begins to read those that are new or begin anew.
  private func survey(_ batch: inout Batch) async throws(KafkaError) {
    nextSurvey = .now + surveyPause
    do throws(KafkaError) {
      let new = try await newPartitions()
      var asked = places.filter { $0.value.next != nil }
      for place in new { asked[place] = PartitionContinuity(known[place]) }
      guard !asked.isEmpty else { throw KafkaError(.unknownTopic, detail: "\(Topic.accountEvents) is not there") }
      let extents = try await source.extents(of: asked.mapValues(\.times), within: Self.surveyLimit)
      var hasChanged = false
      for (place, extent) in extents.sorted(by: { $0.key < $1.key }) {
        guard let continuity = asked[place] else { continue }
        ends[place] = extent.end
        if compare(place, continuity, with: extent, &batch) { hasChanged = true }
      }
      if hasChanged { try assign() }
      suspects.subtract(extents.keys)
      silence = nil
    } catch {
      silence = error
      // Before the first partition is read, and where a partition is in doubt, nothing goes on.
      guard !places.isEmpty, suspects.isEmpty, !error.isFatal else { throw error }
      logger.debug("what the audited topics hold could not be asked", error.metadata)
    }
  }

  /// The partitions that are not read yet. A topic that is not there yet is looked for again.
  private func newPartitions() async throws(KafkaError) -> Set<TopicPartition> {
    var found: Set<TopicPartition> = []
    for topic in AuditedTopic.all {
      do throws(KafkaError) {
        found.formUnion(try await source.partitions(of: topic.topic.name, within: Self.surveyLimit))
      } catch {
        guard error.code == .unknownTopic else { throw error }
      }
    }
    return found.subtracting(places.keys)
  }

  /// Compares a partition with what it holds. True where it is to be read from another place than so far.
  private func compare(
    _ place: TopicPartition, _ before: PartitionContinuity, with extent: PartitionExtent, _ batch: inout Batch
  ) -> Bool {
    let isNew = places[place] == nil
    let isCompacted = AuditedTopic.named(place.topic)?.isCompacted ?? true
    var continuity = before
    switch continuity.compare(with: extent) {
    case .goesOn: break
    case .begins(let first):
      if first > 0, !isCompacted { noteBeginning(of: place, at: first, &batch) }
    case .missing(let range):
      if isNew {
        if !isCompacted { note(.missing, of: place, from: range.lowerBound, to: range.upperBound, &batch) }
      } else {
        // They may have been read ahead: what is missing shows where reading comes to it.
        places[place]?.isCompared(as: continuity)
        return suspects.contains(place)
      }
    case .begunAnew(_, let expected):
      continuity.goBack(to: extent.first)
      note(.begunAnew, of: place, from: expected, to: extent.first, &batch)
      places[place] = continuity
      return true
    }
    places[place] = continuity
    return isNew || suspects.contains(place)
  }

  private func assign() throws(KafkaError) {
    try source.assign(
      places.map { place, continuity in
        PartitionStart(
          topic: place.topic, partition: place.partition, at: continuity.next.map { .offset($0) } ?? .beginning)
      })
  }

  // MARK: What is said

  private func note(
    _ cause: AuditEntry.Gap.Cause, of place: TopicPartition, from: Int64, to: Int64, _ batch: inout Batch
  ) {
    var metadata = LogMetadata(of: place)
    metadata.set("kafka.expectedOffset", .integer(from))
    metadata.set("kafka.offset", .integer(to))
    if AuditedTopic.named(place.topic)?.isCompacted ?? true {
      return logger.warning("a topic of letters begins anew: it is read from its first record on", metadata)
    }
    add(cause, of: place, from: from, to: to, &batch)
    metrics.countGap(cause)
    switch cause {
    case .begunAnew:
      logger.error(
        "a partition's offsets begin again: its topic was made anew, or has lost its end; it is read from its first record on",
        metadata)
    case .missing, .unreadable:
      logger.error("records are missing that the audit log has not seen: Kafka no longer has them", metadata)
    }
  }

  /// The first records of a partition that the log has never read may have gone with its topic's retention.
  private func noteBeginning(of place: TopicPartition, at first: Int64, _ batch: inout Batch) {
    add(.missing, of: place, from: 0, to: first, &batch)
    var metadata = LogMetadata(of: place)
    metadata.set("kafka.offset", .integer(first))
    logger.warning("the audit log begins behind the first records of a partition, which are gone already", metadata)
  }

  private func add(
    _ cause: AuditEntry.Gap.Cause, of place: TopicPartition, from: Int64, to: Int64, _ batch: inout Batch
  ) {
    let gap = AuditEntry.Gap(
      cause, topic: place.topic, partition: place.partition, from: from, to: to, at: now())
    batch.steps.append(.gap(gap))
    batch.positions[place] = CommittedOffset(to)
  }
}
