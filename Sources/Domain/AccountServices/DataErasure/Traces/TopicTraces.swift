package import AccountEvents
import AccountStore
package import EventLoop
package import Kafka

/// Searches a topic of ours for a person, to its end, and says how long what was found stays there.
@Loop
package struct TopicTraces {
  /// Brokers look now and then for what they have to compact or delete, and their clocks are not ours.
  private static let slack = Duration.seconds(86_400)

  private let marks: PersonMarks
  private let hashes: Set<[UInt8]>
  private let configuration: KafkaConfiguration
  private let limit: Duration
  private let log: KafkaLog

  /// A search for an account that these keyed hashes stand for. `limit` is how long the cluster may take for an answer.
  package init(
    for marks: PersonMarks, _ hashes: [AccountHash], _ configuration: KafkaConfiguration, within limit: Duration,
    log: @escaping KafkaLog
  ) {
    self.marks = marks
    self.hashes = Set(hashes.map { Array($0.description.utf8) })
    (self.configuration, self.limit, self.log) = (configuration, limit, log)
  }

  /// What was found on a topic.
  package struct Result: Sendable {
    /// What is to be said.
    package let trace: PersonTrace
    /// The events that records of the person name.
    package let events: Set<EventID>
  }

  /// Searches one topic. `progress` is told how far it is.
  package func search(
    _ topic: Topic, progress: @Loop (_ done: Int64, _ total: Int64) -> Void
  ) async throws(KafkaError) -> Result {
    let state = try await Admin.run(configuration, log: log) { admin throws(KafkaError) in
      try await admin.state(of: topic.name, within: limit)
    }
    guard let state else { return Result(trace: PersonTrace(topic.name, "no such topic", .nothing), events: []) }
    var found = Found(on: topic)
    try await TopicPages.read(topic, configuration, within: limit, log: log) { page throws(KafkaError) in
      for record in page.records {
        found.read(
          record, isNamed: marks.areIn(record), isHashed: record.key.map { hashes.contains($0) } ?? false,
          isOfAccount: record.key == marks.account.key)
      }
      progress(page.done, page.total)
      return true
    }
    return Result(trace: found.trace(state, slack: Self.slack), events: found.events)
  }
}

/// What a search has found on a topic so far.
private struct Found {
  let topic: Topic
  private(set) var events: Set<EventID> = []
  private var letters: Letters?
  /// The records that name the person, by where they stand.
  private var named: [LetterPlace: Timestamp?] = [:]
  /// The account's last record in each partition, where the last one of each key counts, and when it was appended. Since
  /// partitions were added, its key may have been in several.
  private var last: [Int32: (isTombstone: Bool, time: Timestamp?)] = [:]
  /// When the last record of each key was appended, of those that overtake others.
  private var newest: Timestamp?
  private var hashed = 0

  init(on topic: Topic) {
    self.topic = topic
    letters = LetterTopic(topic).map { Letters(on: $0) }
  }

  mutating func read(_ record: ConsumedRecord, isNamed: Bool, isHashed: Bool, isOfAccount: Bool) {
    letters?.read(record)
    let time = record.timestamp.flatMap { Timestamp(milliseconds: $0) }
    newest = [newest, time].compactMap(\.self).max()
    if isHashed { hashed += 1 }
    guard isNamed else { return }
    named[LetterPlace(partition: record.position.partition, offset: record.position.offset)] = time
    if isOfAccount { last[record.position.partition] = (record.value == nil, time) }
    let id = record.headers.last { $0.name == "ce_id" }?.value.map { String(decoding: $0, as: UTF8.self) }
    if let event = id.flatMap({ EventID($0) }) { events.insert(event) }
  }

  func trace(_ state: TopicState, slack: Duration) -> PersonTrace {
    if named.isEmpty {
      if hashed > 0 { return PersonTrace(topic.name, "\(hashed) records by the keyed hash", .impersonal) }
      return .nothing(topic.name)
    }
    let found = "\(named.count) \(named.count == 1 ? "record" : "records")"
    if let letters {
      let waiting = letters.letters.filter { named[$0.place] != nil }.map(\.place.description)
      if !waiting.isEmpty {
        return PersonTrace(
          topic.name, "\(found), of which \(waiting.count) wait for a decision: \(waiting.joined(separator: " "))",
          .staying("until somebody decides"))
      }
      return PersonTrace(topic.name, "\(found), decided about", .passing(until: compacted(state, after: newest, slack)))
    }
    guard state[.cleanup]?.contains("compact") ?? false else {
      guard let lifetime = RecordLifetime(state) else {
        return PersonTrace(topic.name, found, .staying("its retention has no end"))
      }
      let newest = named.values.contains { $0 == nil } ? nil : named.values.compactMap(\.self).max()
      return PersonTrace(topic.name, found, .passing(until: newest.map { $0 + lifetime.end }))
    }
    // Who is back has a younger record than any tombstone.
    guard let youngest = last.values.max(by: { $0.time?.milliseconds ?? .max < $1.time?.milliseconds ?? .max }),
      youngest.isTombstone
    else {
      return PersonTrace(topic.name, found, .staying("until the account is erased"))
    }
    let kept = last.filter { !$0.value.isTombstone }.keys.sorted()
    guard kept.isEmpty else {
      let places = kept.map(String.init).joined(separator: " ")
      return PersonTrace(
        topic.name, "\(found), and a tombstone",
        .staying("until the account's key has a tombstone in partition \(places), too, which it has left"))
    }
    let tombstones = state.settings["delete.retention.ms"].flatMap { Int64($0) }.map { Duration.milliseconds($0) }
    let until = compacted(state, after: youngest.time, slack).flatMap { time in tombstones.map { time + $0 } }
    return PersonTrace(topic.name, "\(found), and a tombstone", .passing(until: until))
  }

  /// When a record is compacted away at the latest that another one has overtaken at a time; nil where nobody says so.
  private func compacted(_ state: TopicState, after time: Timestamp?, _ slack: Duration) -> Timestamp? {
    guard let time, let lag = state[.compaction].flatMap({ Int64($0) }), lag < 36_500 * 86_400_000 else { return nil }
    return time + .milliseconds(lag) + slack
  }
}

extension LetterTopic {
  /// Nil unless letters stand on the topic.
  fileprivate init?(_ topic: Topic) {
    if topic == .quarantine {
      self = .quarantine
      return
    }
    let parts = topic.name.split(separator: ".")
    guard parts.count == 5, let consumer = ConsumerName(String(parts[2])), topic == .deadLetters(of: consumer) else {
      return nil
    }
    self = .deadLetters(of: consumer)
  }
}
