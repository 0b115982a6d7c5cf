import AccountEvents
import AccountServices
import ConsumerSupport
import Dispatch
import EventLoop
import Foundation
import Kafka
import SQLite
import TestSupport
import Testing
import TransparencyLog

/// From the topics to a published checkpoint, and on after whatever has happened.
@Loop @Suite(.timeLimit(.minutes(30))) struct AuditSessionTests {
  private let rig: AuditRig

  init() throws { rig = try AuditRig() }

  private func event(_ number: Int) -> AccountEvent { .sample(number, of: "user-\(number)") }

  @Test func everyRecordStandsInTheLogOnce() async throws {
    for number in 0..<3 { rig.put(event(number)) }
    try await rig.run { _ in
      try await rig.untilPublished(3)
      // The same record twice on its topic, the same event notified again, and an outcome said twice.
      rig.put(event(1))
      rig.put(event(2), jws: AuditSamples.jws)
      for _ in 0..<2 { rig.putOutcome(of: event(0)) }
      rig.putOutcome(of: event(0), .sessionsEnded)
      rig.put(event(3))
      try await rig.untilPublished(6)
    }
    let words = try await rig.entries().map(\.words)
    let expected = (0..<4).map { "obligation event-\($0) none" } + ["effect event-0", "effect event-0"]
    #expect(words.sorted() == expected.sorted())
    #expect(rig.metric("siwa_audit_log_repeated_total") == "3")
    #expect(rig.metric(#"siwa_audit_log_entries_total{kind="obligation"}"#) == "4")
    #expect(rig.metric("siwa_audit_log_size") == "6")
    #expect(rig.metric("siwa_audit_log_waiting_seconds") == "0")
  }

  @Test func aCheckpointIsSignedByTheLogsKeyAndDuringARotationByTheFormerOneToo() async throws {
    let former = try NoteSigner.generate(name: AuditRig.origin).signer
    rig.put(event(0))
    try await rig.run(signers: [rig.key, former]) { _ in try await rig.untilPublished(1) }
    let note = try #require(try rig.checkpoint()).note
    #expect(note.signatures.count == 2)
    for key in [rig.key.key, former.key] { #expect(try note.verified(by: [key]).count == 1) }
  }

  @Test func anEmptyLogHasACheckpointToo() async throws {
    try await rig.run { _ in try await until { try rig.checkpoint() != nil } }
    let checkpoint = try #require(try rig.checkpoint()).checkpoint
    #expect(checkpoint.size == 0 && checkpoint.root == .empty)
  }

  /// Nobody says how many entries there are of what a hanging disk is given, nor that it hangs.
  @Test func whatAHangingDiskIsGivenWaitsFromThenOn() async throws {
    try await rig.run { _ in
      try await until { try rig.checkpoint() != nil }
      let (entered, end) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
      let hanging = Task { [journal = rig.journal] in
        try await journal.run { _ in
          entered.continuation.yield()
          end.wait()
        }
      }
      for await _ in entered.stream { break }
      rig.put(event(0))
      let hasWaited: Result<Void, any Error>
      do {
        hasWaited = .success(try await until { rig.metrics.waiting > .milliseconds(1) })
      } catch { hasWaited = .failure(error) }
      end.signal()
      try await hanging.value
      try hasWaited.get()
      try await rig.untilPublished(1)
      try await until { rig.metrics.waiting == .zero }
    }
  }

  @Test func theNextOneGoesOnAndReadsNothingTwice() async throws {
    for number in 0..<300 { rig.put(event(number)) }
    try await rig.run { _ in try await rig.untilPublished(300) }
    let first = try #require(try rig.checkpoint()).checkpoint
    // As in a process that has published nothing yet.
    rig.metrics.noteFound(0)
    try await rig.run { _ in
      try await until { rig.metric("siwa_audit_log_size") == "300" }
      for number in 300..<310 { rig.put(event(number)) }
      try await rig.untilPublished(310)
      #expect(rig.metric("siwa_audit_log_repeated_total") == "0")
    }
    let second = try #require(try rig.checkpoint()).checkpoint
    let view = LogView(LogDirectory(rig.directory), at: second.head)
    #expect(try await view.consistencyProof(from: 300).older == first.head)
    #expect(try await rig.entries().map(\.words) == (0..<310).map { "obligation event-\($0) none" })
  }

  /// The index is derived: without it, with a damaged one, or with one of another log, the log goes on as before.
  @Test(arguments: ["missing", "damaged", "another log's", "older", "ahead"])
  func theIndexIsMadeAnewFromTheEntries(_ fault: String) async throws {
    for number in 0..<280 { rig.put(event(number)) }
    rig.putOutcome(of: event(0))
    let path = rig.directory + "/" + AuditIndex.fileName
    let old = rig.files.path + "/old.sqlite"
    try await rig.run { _ in try await rig.untilPublished(100) }
    if fault == "older" { try FileManager.default.copyItem(atPath: path, toPath: old) }
    try await rig.run { _ in try await rig.untilPublished(281) }
    switch fault {
    case "missing": AuditIndex.remove(in: rig.directory)
    case "damaged":
      AuditIndex.remove(in: rig.directory)
      try Data(repeating: 7, count: 100_000).write(to: URL(fileURLWithPath: path))
    case "older":
      AuditIndex.remove(in: rig.directory)
      try FileManager.default.copyItem(atPath: old, toPath: path)
    default:
      let index = try AuditIndex.open(in: rig.directory)
      // As after a power failure that took the log's end, or under another log's index.
      let size: UInt64 = fault == "ahead" ? 400 : 281
      _ = try index.add(EntryKey(.obligation(AuditSamples.obligation)), 280)
      try index.commit(.init(size: size, lastLeaf: [UInt8](repeating: 1, count: 32)))
    }
    for number in 0..<300 { rig.put(event(number), at: 2000) }
    try await rig.run { _ in try await rig.untilPublished(301) }
    let words = try await rig.entries().map(\.words)
    #expect(words.count == 301 && Set(words).count == 301)
    let index = try #require(try AuditIndex.look(into: rig.directory))
    #expect(index.extent.size == 301)
    #expect(try index.positions()[AuditRig.events]?.offset == 580)
    #expect(try index.positions()[AuditRig.outcomes]?.offset == 1)
    let id = try #require(EventID("event-0"))
    #expect(try index.numbers(of: id, limit: 9).count == 2)
  }

  /// A partition had another leader for a moment, whose clock was ahead.
  @Test func anIndexThatIsMadeAnewTakesNoTopicForAnotherOne() async throws {
    for (number, time) in ([1000, 3000] as [Int64]).enumerated() { rig.put(event(number), at: time) }
    rig.cluster.append(
      KafkaRecord(topic: AuditRig.events.topic, key: [1], value: [1]), to: AuditRig.events.partition, timestamp: 1500)
    rig.put(event(2), at: 2000)
    try await rig.run { _ in try await rig.untilPublished(4) }
    AuditIndex.remove(in: rig.directory)
    try await rig.run { _ in
      rig.put(event(3), at: 4000)
      try await rig.untilPublished(5)
    }
    var words = (0..<4).map { "obligation event-\($0) none" }
    words.insert("gap unreadable 2-3", at: 2)
    #expect(try await rig.entries().map(\.words) == words)
  }

  @Test func aTopicThatIsMadeAnewIsReadAgainAndSaidOnce() async throws {
    for number in 0..<5 { rig.put(event(number)) }
    try await rig.run { _ in
      try await rig.untilPublished(5)
      rig.cluster.loseRecords(of: AuditRig.events, from: 0)
      // What stood there before, and more.
      for number in 3..<8 { rig.put(event(number), at: 2000) }
      try await rig.untilPublished(9)
    }
    let words = try await rig.entries().map(\.words)
    #expect(words.count == 9 && words[5].hasPrefix("gap begun-anew 5-0"))
    #expect(Set(words).count == 9)
    // The next process finds nothing new.
    try await rig.run { _ in
      rig.put(event(20), at: 2001)
      try await rig.untilPublished(10)
    }
    #expect(try await rig.entries().last?.words == "obligation event-20 none")
  }

  @Test func whatRetentionTookIsAnEntry() async throws {
    for number in 0..<9 { rig.put(event(number)) }
    rig.cluster.deleteRecords(of: AuditRig.events, before: 4)
    try await rig.run { _ in try await rig.untilPublished(6) }
    #expect(try await rig.entries().first?.words == "gap missing 0-4")
  }

  @Test func aSignatureWaitsForItsKey() async throws {
    let apple = try AuditForge.signingKey()
    let signed = AuditSamples.event()
    try await rig.run(keys: [apple]) { _ in
      rig.put(signed, jws: try AuditForge.jws(signed))
      rig.put(event(1), jws: try AuditForge.jws(event(2)))
      try await rig.untilPublished(2)
    }
    #expect(
      try await rig.entries().map(\.words) == ["obligation \(signed.id) verified", "obligation event-1 refused"])
    #expect(rig.metric(#"siwa_audit_log_signatures_total{signature="refused"}"#) == "1")
    #expect(rig.metric(#"siwa_audit_log_signatures_total{signature="verified"}"#) == "1")
  }

  /// An entry stands for good: nobody says in a hurry that a key is unknown.
  @Test func whoEndsWhileAKeyIsOnItsWayLeavesTheVerdictToTheNextOne() async throws {
    let signed = AuditSamples.event()
    rig.put(signed, jws: try AuditForge.jws(signed))
    var reads = 0
    let count: @Loop () -> Void = { reads += 1 }
    try await rig.run(keyClock: AlarmsAlone(), readingKeys: count) { _ in try await until { reads > 1 } }
    #expect(try await rig.entries().isEmpty)
    try await rig.run(keys: [try AuditForge.signingKey()]) { _ in try await rig.untilPublished(1) }
    #expect(try await rig.entries().map(\.words) == ["obligation \(signed.id) verified"])
  }

  @Test func whatCannotBeSignedIsPublishedLater() async throws {
    let signer = FailingSigner(rig.key)
    rig.put(event(0))
    try await rig.run(signers: [signer]) { session in
      try await until { session.signingFailure != nil }
      #expect(try rig.checkpoint() == nil)
      // Nor is it a proof that everything was read, and is on the disk.
      let source = try #require(rig.source)
      let asked = source.questions
      try await until { source.questions > asked + 5 }
      #expect(!session.isProven)
      rig.put(event(1))
      await signer.mend()
      try await rig.untilPublished(2)
      #expect(session.signingFailure == nil)
    }
    #expect(rig.captured.lines.count { $0.contains("could not be signed") } == 1)
    #expect(try #require(Int(rig.metric("siwa_audit_log_signing_failures_total") ?? "")) >= 1)
  }

  /// A publication may fail behind the file's replacement: the next session finds nothing that waits.
  @Test func whatIsFoundPublishedDoesNotWait() async throws {
    rig.put(event(0))
    try await rig.run(signers: [FailingSigner(rig.key)]) { session in
      try await until { session.signingFailure != nil && rig.metrics.waiting > .zero }
    }
    try await publishFlushed()
    try await rig.run { _ in try await until { rig.metrics.waiting == .zero } }
    #expect(try rig.checkpoint()?.checkpoint.size == 1)
  }

  /// The process that appended it may have been ended since.
  @Test func whatIsFoundUnpublishedWaits() async throws {
    rig.put(event(0))
    try await rig.run(signers: [FailingSigner(rig.key)]) { session in
      try await until { session.signingFailure != nil && rig.metrics.waiting > .zero }
    }
    rig.metrics.standBy()
    try await rig.run(signers: [FailingSigner(rig.key)]) { session in
      try await until { session.signingFailure != nil }
      #expect(rig.metrics.waiting > .zero && !session.isProven)
    }
    try await rig.run { _ in try await until { rig.metrics.waiting == .zero } }
    #expect(try rig.checkpoint()?.checkpoint.size == 1)
  }

  private func publishFlushed() async throws {
    let writer = try LogWriter(opening: rig.directory, origin: AuditRig.origin)
    try writer.publish(try await SignedNote.sign(writer.flushed.text, with: rig.key))
  }

  @Test func whatFollowsFromALaterCosignatureStands() async throws {
    var notes: [SignedNote] = []
    for number in 0..<2 {
      rig.put(event(number))
      try await rig.run { _ in try await rig.untilPublished(UInt64(number + 1)) }
      notes.append(try #require(try rig.checkpoint()).note)
    }
    try await rig.open()
    let journal = rig.journal
    let disk = Pipe()
    let slow = Task(executorPreference: Loop.executor) {
      try await journal.run { _ in _ = try disk.fileHandleForReading.read(upToCount: 1) }
    }
    var publications: [Task<Void, any Error>] = []
    for (newest, witnessed) in [(notes[0], notes[0]), (nil, notes[1])] {
      let step = WitnessedCheckpoints.Step(newest: newest, witnessed: witnessed)
      await turn()
      publications.append(Task(executorPreference: Loop.executor) { try await journal.publish(step) })
    }
    await turn()
    disk.fileHandleForWriting.write(Data([0]))
    for task in [slow] + publications { try await task.value }
    #expect(try rig.checkpoint(LogPath.witnessed)?.checkpoint.size == 2)
    await journal.close()
  }

  @Test func whatWasReadIsPublishedInTheEnd() async throws {
    for number in 0..<7 { rig.put(event(number)) }
    try await rig.run(every: .seconds(3600)) { _ in
      try await until { rig.source?.position(of: AuditRig.events) == 7 }
    }
    #expect(try rig.checkpoint()?.checkpoint.size == 7)
  }

  /// However long the interval is.
  @Test func muchIsPublishedAtOnce() async throws {
    let reason = String(repeating: "r", count: 4000)
    for number in 0..<9000 {
      rig.put(
        EventRecord(
          .sample(number, of: "user", .accountDeletionRequested), requestedBy: "bob", because: reason,
          code: { _ in "a code" }))
    }
    try await rig.run(every: .seconds(3600)) { _ in try await rig.untilPublished(1000) }
  }

  /// A cluster that hands over nothing for a while says nothing about whether the disk takes it.
  @Test func noRecordsForAWhileAreNoProofWhereThereAreSome() async throws {
    try await rig.run { session in try await until { session.isProven } }
    #expect(try rig.checkpoint()?.checkpoint.size == 0)
    rig.put(event(0))
    try await rig.run { session in
      let source = try #require(rig.source)
      source.most = 0
      try await until { source.questions > 3 }
      #expect(!session.isProven)
      source.most = .max
      try await until { session.isProven }
      #expect(try rig.checkpoint()?.checkpoint.size == 1)
    }
    try await rig.run { session in
      try await until { session.isProven }
      #expect(try rig.checkpoint()?.checkpoint.size == 1, "there was nothing to be logged")
    }
  }

  @Test func anotherProcessIsKeptOut() async throws {
    try await rig.run { _ in
      let other = JournalThread()
      let error = await #expect(throws: LogError.self) {
        try await other.open(in: rig.directory, origin: AuditRig.origin)
      }
      #expect(error?.code == .locked)
    }
    try await rig.open()
    await rig.journal.close()
  }
}

/// A signer that cannot sign until it is mended.
private actor FailingSigner: NoteSigning {
  nonisolated let key: VerifierKey
  private let signer: NoteSigner
  private var isMended = false

  init(_ signer: NoteSigner) { (self.signer, key) = (signer, signer.key) }

  func mend() { isMended = true }

  func sign(_ text: [UInt8]) async throws -> [UInt8] {
    guard isMended else { throw SystemError(code: 5) }
    return try await signer.sign(text)
  }
}

/// A clock that moves only when its alarm goes off: a machine that stands still uses up nobody's patience.
@Loop
private final class AlarmsAlone: AlarmClock {
  private(set) var now = MonotonicTime.now
  private let machine = SystemAlarmClock()

  func set(_ time: MonotonicTime, _ action: @escaping @Loop () -> Void) {
    machine.set(.now + .milliseconds(10)) { [self] in
      now = time
      action()
    }
  }
}
