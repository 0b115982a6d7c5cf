import AccountEvents
import EventLoop
import Glibc
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// `siwa-audit-log` on a broker of Apache Kafka, killed again and again while events and outcomes come.
@Loop @Suite(RealBroker.isThere, GoJudge.isThere, .serialized, .timeLimit(.minutes(30))) struct KilledAuditLogTests {
  private let files = TemporaryDirectory()

  /// Before each of the steps that it makes on its files, from the opening of the log on, and in the midst of it: see
  /// `Preloaded/crash.c` of the log's own tests.
  @Test func beforeEachStepOnItsFiles() async throws {
    var random = SeededRandom()
    let library = files.path + "/crash.so"
    let build = try await RunningProgram.finish(
      path: "clang",
      [
        "-shared", "-fPIC", "-O2", "-o", library,
        Repository.root + "/Tests/TransparencyLogTests/Preloaded/crash.c", "-ldl",
      ])
    try #require(build.end == .exit(0), "\(build.errors)")
    try await AuditLogLives.run(in: files) { lives in
      // Opening and the first checkpoint take some forty steps, each later one twenty-five.
      for step in 1...90 {
        let mode = Bool.random(using: &random) ? "kill" : "half"
        let end = try await lives.live([
          "LD_PRELOAD": library, "CRASH_FOLDER": lives.directory, "CRASH_STEP": "\(step)", "CRASH_MODE": mode,
        ]) { _ in false }
        #expect(end == .signal(SIGKILL), "step \(step), seed \(random.seed)")
      }
      try await lives.finish("seed \(random.seed)")
    }
  }

  /// At any moment, from its start on.
  @Test func atAnyMoment() async throws {
    var random = SeededRandom()
    try await AuditLogLives.run(in: files) { lives in
      for _ in SeededRandom.rounds(25) {
        let moment = MonotonicTime.now + .milliseconds(Int.random(in: 20...1200, using: &random))
        let end = try await lives.live { _ in moment <= .now }
        #expect(end == .signal(SIGKILL), "seed \(random.seed)")
      }
      try await lives.finish("seed \(random.seed)")
    }
  }
}

/// Lives of `siwa-audit-log`, one behind the other on one directory, and everybody who was shown its checkpoints meanwhile:
/// a reader, and a witness that sees each that is signed, published or not.
@Loop
private final class AuditLogLives {
  /// Where the log is.
  let directory: String
  private let stage: ConsumerStage
  private let traffic: AuditTraffic
  private let reader: CheckpointReader
  private let witness: TestWitness

  /// Runs `body` while a little comes all the time.
  static func run(in files: TemporaryDirectory, _ body: @Loop (AuditLogLives) async throws -> Void) async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      try await TestWitness.run([("one", .honest)], of: stage.auditKey.key) { witnesses in
        let lives = try AuditLogLives(stage, traffic, witnesses[0], files)
        lives.traffic.stream()
        try await body(lives)
      }
    }
  }

  private init(
    _ stage: ConsumerStage, _ traffic: AuditTraffic, _ witness: TestWitness, _ files: TemporaryDirectory
  ) throws {
    (self.stage, self.traffic, self.witness) = (stage, traffic, witness)
    directory = stage.auditLog
    try stage.haveWitnessed(by: [witness])
    reader = try CheckpointReader(stage.auditKey.key, files: files)
  }

  /// A life that ends by itself, or is ended once `isOver` says so. Says how it ended.
  func live(
    _ environment: [String: String] = [:], until isOver: @Loop (RunningProgram) -> Bool
  ) async throws -> RunningProgram.End {
    let program = try stage.launch("siwa-audit-log", environment)
    var isFollowed = false
    try await until {
      if !isFollowed, program.errors.contains(#""message":"the audit log begins""#) {
        reader.follow(try await RunningAuditLog(program))
        isFollowed = true
      }
      return program.hasEnded || isOver(program)
    }
    if !program.hasEnded { program.signal(SIGKILL) }
    let end = try await program.untilEnd()
    try await reader.stop()
    // What a server of static files would show.
    if let bytes = try LogDirectory(directory).contents(of: LogPath.checkpoint, limit: SignedNote.maximumByteCount) {
      try reader.see(bytes)
    }
    return end
  }

  /// A last life, which is not cut short: then everything is in the log once, and the log continues all that it ever was.
  func finish(_ comment: Comment) async throws {
    // On a busy machine most lives end before much is published: too few checkpoints prove nothing.
    while reader.seen.count <= 25 {
      let enough = reader.seen.count + 4
      let end = try await live { _ in reader.seen.count >= enough }
      #expect(end == .signal(SIGKILL), comment)
    }
    try await traffic.stop()
    let log = try await stage.startAuditLog()
    reader.follow(log)
    try await log.untilPublished(traffic.entryCount)
    #expect(try await log.end() == .exit(0), comment)
    for note in witness.asked { try reader.see(note.bytes) }
    #expect(witness.contradictions == 0, comment)
    try await traffic.expectAll(seenBy: reader, comment)
    let complete = try await stage.siwa("audit", "completeness")
    #expect(
      complete.end == .exit(0) && complete.output.contains("Obligations  \(traffic.events.count), ")
        && complete.output.contains("Open         0, 0 of them overdue\nGaps         0"), "\(complete), \(comment)")
  }
}
