import AccountEvents
package import EventLoop
package import Kafka

/// A topic of letters on Kafka, for an operator: read to its end, and acted upon.
@Loop
package final class LetterBox {
  let topic: LetterTopic
  let configuration: KafkaConfiguration
  let limit: Duration
  let log: KafkaLog

  /// The letters of a topic. `limit` is how long the cluster may take for an answer, or be silent while it is read.
  package init(
    _ configuration: KafkaConfiguration, _ topic: LetterTopic, within limit: Duration, log: @escaping KafkaLog
  ) {
    (self.configuration, self.topic, self.limit, self.log) = (configuration, topic, limit, log)
  }

  /// What stands on the topic by now.
  package func read() async throws(KafkaError) -> Letters {
    var letters = Letters(on: topic)
    try await read(topic.topic) { records in
      for record in records { letters.read(record) }
      return true
    }
    return letters
  }

  /// Calls `body` with the records of a topic, some at a time, for as long as it says so.
  func read(
    _ topic: Topic, each body: @Loop ([ConsumedRecord]) async throws(KafkaError) -> Bool
  ) async throws(KafkaError) {
    try await TopicPages.read(topic, configuration, within: limit, log: log) { page throws(KafkaError) in
      try await body(page.records)
    }
  }

  /// Reads what letters say, one after the other: each as it stands; of one that only says where the record stands, that
  /// record. Nil where it is not there any more.
  package func contents(
    of some: [Letter], each body: @Loop (Letter, ConsumedRecord?) async throws(KafkaError) -> Void
  ) async throws(KafkaError) {
    try await Consumer.run(configuration, log: log) { reader throws(KafkaError) in
      var rest = some[...]
      while !rest.isEmpty {
        let page = rest.prefix(TopicPages.most)
        rest = rest.dropFirst(page.count)
        let whole = try await standing(page)
        for letter in page {
          let content = letter.isShortened ? try await original(of: letter, with: reader) : whole[letter.place]
          try await body(letter, content)
        }
      }
    }
  }

  /// The records of letters that are whole, by their places. They are read in one go: the broker takes up to half a second for
  /// each place that is asked for by itself.
  private func standing(_ some: ArraySlice<Letter>) async throws(KafkaError) -> [LetterPlace: ConsumedRecord] {
    let wanted = Dictionary(some.filter { !$0.isShortened }.map { ($0.place, $0) }, uniquingKeysWith: { $1 })
    var offsets: [Int32: Range<Int64>] = [:]
    for place in wanted.keys {
      let known = offsets[place.partition] ?? place.offset..<place.offset + 1
      offsets[place.partition] = min(known.lowerBound, place.offset)..<max(known.upperBound, place.offset + 1)
    }
    if offsets.isEmpty { return [:] }
    let pages = try await TopicPages.open(topic.topic, offsets, configuration, within: limit, log: log)
    var found: [LetterPlace: ConsumedRecord] = [:]
    let result: Result<Void, KafkaError>
    do throws(KafkaError) {
      while let page = try await pages.next() {
        for record in page.records {
          let place = LetterPlace(partition: record.position.partition, offset: record.position.offset)
          guard let letter = wanted[place], record.key == letter.formerKey ?? letter.key || record.key == nil else {
            continue
          }
          found[place] = record
        }
      }
      result = .success(())
    } catch { result = .failure(error) }
    await pages.close()
    try result.get()
    return found
  }

  private func original(of letter: Letter, with reader: Consumer) async throws(KafkaError) -> ConsumedRecord? {
    guard let origin = letter.origin else { return nil }
    let held: [Int32: Range<Int64>]
    do throws(KafkaError) {
      held = try await Admin.run(configuration, log: log) { admin throws(KafkaError) in
        // A topic that is not there is asked about once; its offsets would be asked for until the time is over.
        _ = try await admin.describe(topic: origin.topic, within: limit)
        return try await admin.held(by: origin.topic, within: limit)
      }
    } catch  where error.code == .unknownTopic {
      return nil
    }
    // Behind the end of a topic that was made anew nothing would come.
    guard held[origin.partition]?.contains(origin.offset) == true else { return nil }
    let record = try await record(origin.topic, origin.partition, origin.offset, with: reader)
    guard letter.account == nil || record?.key == letter.account else { return nil }
    // Where the topic was made anew, another event may stand there.
    let id = record?.headers.last { $0.name == "ce_id" }?.value.map { String(decoding: $0, as: UTF8.self) }
    return letter["ce_id"] == nil || letter["ce_id"] == id ? record : nil
  }

  /// The record at a place; nil where it is not there any more, and there are later ones.
  private func record(
    _ topic: String, _ partition: Int32, _ offset: Int64, with reader: Consumer
  ) async throws(KafkaError) -> ConsumedRecord? {
    try reader.assign([PartitionStart(topic: topic, partition: partition, at: .offset(offset))])
    guard let record = try await reader.next(upTo: 1, within: limit)?.first else {
      throw KafkaError(.timedOut, detail: "\(topic)/\(partition)/\(offset) could not be read within \(limit)")
    }
    return record.position.offset == offset ? record : nil
  }

  /// Notes of letters that nothing follows from them.
  package func discard(
    _ some: [Letter], of letters: Letters, _ decision: LetterDecision, each done: (Letter, LetterOutcome) -> Void
  ) async throws(KafkaError) {
    var letters = letters
    try await write { producer throws(KafkaError) in
      var rest = some[...]
      while !rest.isEmpty {
        try await note(rest.prefix(TopicPages.most), in: &letters, decision, with: producer, each: done)
        rest = rest.dropFirst(TopicPages.most)
      }
    }
  }

  /// Puts notes into the places of letters, and returns once all are there.
  func note(
    _ some: some Sequence<Letter>, in letters: inout Letters, _ decision: LetterDecision, with producer: Producer,
    each done: (Letter, LetterOutcome) -> Void
  ) async throws(KafkaError) {
    var notes: [KafkaRecord] = []
    var decided: [(letter: Letter, last: Int)] = []
    for letter in some {
      notes += letters.decide(letter, decision)
      decided.append((letter, notes.count - 1))
    }
    let results = await producer.send(notes)
    // The note is the last of a letter's records.
    for (letter, last) in decided {
      if case .success = results[last] { done(letter, .done) }
    }
    for result in results { _ = try result.get() }
  }

  func write(_ body: @Loop (Producer) async throws(KafkaError) -> Void) async throws(KafkaError) {
    try await Producer.run(configuration, deadline: limit, log: log, body)
  }
}
