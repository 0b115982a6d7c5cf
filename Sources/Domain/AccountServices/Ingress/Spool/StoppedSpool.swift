package import AccountEvents
package import EventLoop
import Glibc
import JSON
package import Kafka

/// A spool in an operator's hands, while no process has it: for records that get nowhere by themselves.
///
/// Each decision is noted in the file `decisions.jsonl` beside the database, without personal data, before its record goes.
@Loop
package final class StoppedSpool {
  /// A record that is held.
  package struct Place: Sendable {
    /// Its number.
    package let sequence: Int64
    /// Its account's.
    package let account: LaneID
  }

  /// What is decided of a record.
  package enum Decision: Sendable {
    /// It was published by hand.
    case released
    /// Nothing follows from it.
    case discarded(reason: String)
  }

  private let directory: String
  private let keeper: SpoolKeeper

  private init(_ directory: String) { (self.directory, keeper) = (directory, SpoolKeeper(directory)) }

  /// Takes the spool in `directory`. Throws `.inUse` where a process has it.
  package static func open(_ directory: String) async throws(SpoolError) -> StoppedSpool {
    let spool = StoppedSpool(directory)
    try await spool.keeper.openAsItIs()
    return spool
  }

  /// What it holds, oldest first, what cannot be read included.
  package func places() async throws(SpoolError) -> [Place] {
    try await keeper.run { file throws(SpoolError) in
      try file.heldRecords().map { Place(sequence: $0.sequence, account: $0.lane) }
    }.get()
  }

  /// Which of `all` stand before one of `chosen` of their account and are not chosen themselves; the first of them.
  package static func overtaken(by chosen: Set<Int64>, in all: [Place]) -> Int64? {
    var left: [LaneID: Int64] = [:]
    for place in all {
      if !chosen.contains(place.sequence) {
        left[place.account] = left[place.account] ?? place.sequence
      } else if let earlier = left[place.account] {
        return earlier
      }
    }
    return nil
  }

  /// A record; nil where it cannot be read.
  package func record(_ sequence: Int64) async throws(SpoolError) -> SpooledRecord? {
    let page = try await keeper.run { file throws(SpoolError) in try file.read(after: sequence - 1, limit: 1) }.get()
    return page.records.first { $0.sequence == sequence }
  }

  /// Publishes a record on its topic, and returns once every in-sync replica has it.
  package func publish(_ record: SpooledRecord, with producer: Producer) async throws(KafkaError) {
    _ = try await producer.send(KafkaRecord(record.record))
  }

  /// Notes a decision, and takes the record out.
  package func settle(
    _ sequence: Int64, _ record: SpooledRecord?, _ decision: Decision, by person: String, at now: Timestamp
  ) async throws(SpoolError) {
    let line = Self.line(sequence, record, decision, by: person, at: now)
    _ = try await keeper.run { [directory] file throws(SpoolError) in
      try Self.append(line, in: directory)
      return try file.commit(SpoolFile.Changes(removals: [sequence]))
    }.get()
  }

  /// Lets go of the spool; what is gone leaves no traces.
  package func close() async throws(SpoolError) {
    let result = await keeper.run { file throws(SpoolError) in _ = try file.shrink() }
    await keeper.close()
    try result.get()
  }

  private nonisolated static func line(
    _ sequence: Int64, _ record: SpooledRecord?, _ decision: Decision, by person: String, at now: Timestamp
  ) -> [UInt8] {
    var members: [JSONValue.Member] = [
      .init("time", .integer(now.milliseconds)), .init("record", .integer(sequence)), .init("by", .string(person)),
    ]
    switch decision {
    case .released: members.append(.init("decision", "released"))
    case .discarded(let reason):
      members += [.init("decision", "discarded"), .init("reason", .string(reason))]
    }
    if let record {
      members.append(.init("topic", .string(record.record.topic.name)))
      for (name, header) in [("event", "ce_id"), ("type", "ce_type")] {
        members.append(.init(name, .string(record.record.headers.text(of: header))))
      }
    }
    return JSONValue.object(members).bytes + [UInt8(ascii: "\n")]
  }

  private nonisolated static func append(_ line: [UInt8], in directory: String) throws(SpoolError) {
    let file = unsafe Glibc.open(
      "\(directory)/decisions.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
    defer { if file >= 0 { Glibc.close(file) } }
    guard file >= 0, unsafe write(file, line, line.count) == line.count, fsync(file) == 0 else {
      throw SpoolError(.failed, directory, "decisions.jsonl: \(SystemError.current)")
    }
    try SpoolDirectory.sync(directory, directory)
  }
}
