import ConsumerSupport
import EventLoop
import HTTPClient
import Kafka
import Testing
import TransparencyLog

@testable import AccountServices

/// How what waits on the loop learns of what comes between its look and its wait.
@Loop @Suite(.timeLimit(.minutes(30))) struct WaitingTests {
  /// What is waited for.
  @Loop private final class Door {
    let waiting = Waiting(.system)
    var isShut = true

    /// Opens after so many turns of the loop.
    func open(after turns: Int) async {
      for _ in 0..<turns { await Loop.nextTurn() }
      isShut = false
      waiting.signal()
    }
  }

  /// A test's task does not prefer the loop's executor: it gives way between its look and its wait.
  @Test func aChangeBetweenTheLookAndTheWaitIsNotMissed() async {
    for turns in 0..<400 {
      let door = Door()
      async let change: Void = door.open(after: turns % 8)
      await door.waiting.change { door.isShut }
      await change
      #expect(!door.isShut)
    }
  }

  @Test func whatWakesTheDrainBeforeItWaitsIsNotMissed() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.publisher.wakeDrain()
      await rig.publisher.wait(until: .distantFuture)
    }
  }

  @Test func aCheckpointBetweenTheLookAndTheWaitIsNotMissed() async throws {
    let rig = try AuditRig()
    let client = WitnessClient(
      try #require(HTTPClientURL("https://witness.example/")), key: rig.key.key,
      client: HTTPClient(
        HTTPClientConfiguration(
          userAgent: "siwa-tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(1),
          maximumConnections: 1, maximumRequests: 1)), within: .seconds(1), source: LogDirectory(rig.directory))
    let rounds = rig.rounds([(name: "one", key: rig.key.key, client: client)])
    let text = Checkpoint(origin: AuditRig.origin, head: .empty).text
    let note = try await SignedNote.sign(text, with: rig.key)
    for size in UInt64(1)..<400 {
      async let announcement: Void = announce(size)
      let (head, _) = try #require(await rounds.next(from: size))
      await announcement
      #expect(head.size == size)
    }
    @Loop func announce(_ size: UInt64) async {
      for _ in 0..<size % 8 { await Loop.nextTurn() }
      rounds.announce(note, TreeHead(size: size, root: .empty))
    }
  }

  @Test func aRecordBetweenTheLookAndTheWaitIsNotMissed() async throws {
    for turns in 0..<400 {
      let cluster = MemoryCluster()
      let source = MemorySource(cluster)
      source.assign([.events(0)])
      _ = try await source.nextEvent(upTo: 1)
      async let record: Void = put(after: turns % 8)
      let event = try await source.nextEvent(upTo: 1)
      await record
      guard case .records(let records) = event else {
        Issue.record("no record")
        return
      }
      #expect(records.count == 1)
      @Loop func put(after turns: Int) async {
        for _ in 0..<turns { await Loop.nextTurn() }
        cluster.append(.of(.sample(1)), to: 0)
        source.wake()
      }
    }
  }
}
