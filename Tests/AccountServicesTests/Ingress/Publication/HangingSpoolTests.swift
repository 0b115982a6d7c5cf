import AccountEvents
import EventLoop
import Foundation
import TestSupport
import Testing

@testable import AccountServices

/// The spool's disk answers neither yes nor no.
@Loop @Suite(.timeLimit(.minutes(30))) struct HangingSpoolTests {
  /// A disk that hangs until it goes on.
  @Loop private final class Disk {
    private let pipe = Pipe()
    private let hanging: Task<Void, Never>

    /// Has the disk of the rig's spool hang.
    init(_ rig: PublisherRig) async {
      let (pipe, keeper) = (pipe, rig.spool.keeper)
      hanging = Task(executorPreference: Loop.executor) {
        _ = await keeper.run { _ throws(SpoolError) in _ = pipe.fileHandleForReading.availableData }
      }
      await turn()
    }

    /// Lets it go on, and waits until nothing is in the spool.
    func goOn(_ rig: PublisherRig) async throws {
      pipe.fileHandleForWriting.closeFile()
      await hanging.value
      try await until { rig.spool.takesRecords && rig.spool.depth == 0 }
    }
  }

  /// Runs `body` with a publisher that has no patience, over a disk that hangs and a log that holds what it is given.
  private func run(_ body: @Loop (PublisherRig, Disk) async throws -> Void) async throws {
    try await PublisherRig.run(patience: .zero, deadline: .zero, spoolPatience: .milliseconds(1)) { rig in
      let disk = await Disk(rig)
      rig.log.hold()
      try await body(rig, disk)
    }
  }

  @Test func whoeverWaitsIsToldInTimeAndTheLogIsAskedMeanwhile() async throws {
    try await run { rig, disk in
      for number in 1...2 {
        await #expect(throws: EventLogError.self) { try await rig.publish("ada", number) }
      }
      #expect(rig.spool.isHanging && !rig.spool.takesRecords && rig.metric("siwa_spool_takes_records") == "0")
      rig.log.unreadiness = .sample(.unavailable)
      let state = await rig.publisher.check()
      #expect("\(state)".contains("its disk does not answer"))
      // The log shows that it is well again.
      #expect(rig.metric("siwa_ingress_log_suspect") == "1")
      rig.log.release()
      let others = try await rig.publish("bob", 1)
      #expect(others == .published(EventLogPosition(partition: 0, offset: 1)))
      #expect(rig.metric("siwa_ingress_log_suspect") == "0")
      let repeated = try await rig.publish("ada", 1)
      #expect(repeated == .repeated, "the log had it, whatever Apple was told")
      try await disk.goOn(rig)
      let last = try await rig.publish("ada", 2)
      #expect(last == .published(EventLogPosition(partition: 0, offset: 2)))
      #expect(rig.published == ["ada-1", "bob-1", "ada-2"])
      for line in ["the spool's disk does not answer", "the spool's disk answers again"] {
        #expect(rig.lines.lines.count { $0.contains(line) } == 1, "\(line)")
      }
    }
  }

  @Test func whatComesWhileItHangsQueuesNowhere() async throws {
    try await run { rig, disk in
      for person in ["ada", "bob", "eve", "dan"] {
        await #expect(throws: EventLogError.self) { try await rig.publish(person, 1) }
      }
      let first = rig.spool.lastSequence
      await #expect(throws: EventLogError.self) { try await rig.publish("mia", 1) }
      #expect(rig.spool.isHanging && rig.spool.lastSequence == first)
      rig.log.release()
      try await disk.goOn(rig)
    }
  }

  /// What Apple signs by a key is not published before the key's record is.
  @Test func whatHasNoOrderIsNotHeldUpByOneOfItsOwn() async throws {
    try await run { rig, disk in
      rig.log.fault = { _ in .sample(.unavailable) }
      rig.log.release()
      let record = EventRecord(topic: .signingKeys, key: Array("key".utf8), value: [1], headers: [])
      await #expect(throws: EventLogError.self) { try await rig.publisher.publish(record, as: nil) }
      rig.log.fault = { _ in nil }
      _ = try await rig.publisher.publish(record, as: nil)
      #expect(rig.log.signingKeys.count == 1)
      try await disk.goOn(rig)
    }
  }
}
