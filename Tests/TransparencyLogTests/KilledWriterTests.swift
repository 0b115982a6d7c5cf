import Cryptography
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import TransparencyLog

/// A writer that is killed before every step that it makes on its files, and begun anew.
@Loop @Suite(.serialized, .timeLimit(.minutes(30))) struct KilledWriterTests {
  private let files = TemporaryDirectory()

  /// What is left of what the writer did: see `Preloaded/crash.c`.
  enum Mode: String, CaseIterable {
    case kill, half, tear, lose, leave

    /// Those that a life of its own is enough to see.
    static let single: [Mode] = [.kill, .half, .tear, .lose]
  }

  /// The end of a life: killed before a step (0: not at all), after another one that failed (0: none).
  struct End {
    var step = 0, failure = 0
    var mode: Mode
  }

  @Test(arguments: Mode.single)
  func noCheckpointThatWasEverSignedIsContradicted(mode: Mode) async throws {
    var random = SeededRandom()
    let trial = try await Trial(in: files, seed: random.seed)
    // What a step leaves half done differs little from step to step: a third of them a run.
    let stride = [.kill, .lose].contains(mode) ? 1 : 3
    var step = Int.random(in: 1...stride, using: &random)
    while try await trial.isKilled([End(step: step, mode: mode)]) { step += stride }
    #expect(step > 100, "there are fewer steps than there should be")
  }

  @Test func whoeverIsKilledAgainAndAgainIsNotDifferent() async throws {
    var random = SeededRandom()
    for round in SeededRandom.rounds(8) {
      let mode = Mode.single[round % Mode.single.count]
      let trial = try await Trial(in: files, seed: random.seed)
      _ = try await trial.isKilled((0..<6).map { _ in End(step: .random(in: 1...60, using: &random), mode: mode) })
    }
  }

  /// A step fails, the writer removes what it had begun and tries again what it did, and is killed at its second step of
  /// that, or the power fails there.
  @Test func whatIsTriedAgainHarmsNothingThatIsAnnounced() async throws {
    var random = SeededRandom()
    let trial = try await Trial(in: files, seed: random.seed)
    var (step, isKilled) = (1, true)
    while isKilled {
      let mode = Mode.single.randomElement(using: &random) ?? .kill
      isKilled = try await trial.isKilled([End(step: step + 3, failure: step, mode: mode)])
      step += 1
    }
    #expect(step > 100, "there are fewer steps than there should be")
  }

  /// A writer is killed between a renaming and the moment at which that is durable; the next one finds the new name, and
  /// then the power fails.
  @Test func whatWasReadAtOpeningIsDurableBeforeItIsSigned() async throws {
    var random = SeededRandom()
    let trial = try await Trial(in: files, seed: random.seed)
    for _ in SeededRandom.rounds(60) {
      let ends = [
        End(step: .random(in: 1...120, using: &random), mode: .leave),
        End(step: .random(in: 1...8, using: &random), mode: .lose),
      ]
      _ = try await trial.isKilled(ends, from: 1)
    }
  }

  @Test(.enabled("no mount namespaces here") { try await Self.hasNamespaces() })
  func aFullDiskHarmsNothing() async throws {
    let text = try NoteSigner.generate(name: Trial.origin).text
    let writer = RunningProgram.path(of: "killed-log-writer")
    let outcome = try await RunningProgram.finish(
      path: "/usr/bin/unshare",
      Self.namespace + ["mount -t tmpfs -o size=24m tmpfs $0 && exec $1 $0 $2 full 0 0", files.path, writer, text])
    #expect(outcome.end == .exit(0), "\(outcome)")
    let lines = outcome.output.split(separator: "\n").filter { !$0.hasPrefix("signed ") && !$0.hasPrefix("published ") }
    #expect(lines == Array(repeating: "refused full", count: 6) + ["verified true"], "\(outcome)")
  }

  private static let namespace = ["--user", "--map-root-user", "--mount", "/bin/sh", "-c"]

  private static func hasNamespaces() async throws -> Bool {
    let words = namespace + ["mount -t tmpfs tmpfs /mnt"]
    return try await RunningProgram.finish(path: "/usr/bin/unshare", words).end == .exit(0)
  }
}

/// Lives of a writer, one behind the other on one directory, and what a witness saw of them.
@Loop private struct Trial {
  static let origin = "example.com/log"
  private static let size = 512

  private let library, key: String
  private let trust: LogTrust
  private let seed: UInt64

  init(in files: TemporaryDirectory, seed: UInt64) async throws {
    (self.seed, library) = (seed, files.path + "/crash.so")
    let (signer, text) = try NoteSigner.generate(name: Self.origin)
    key = text
    trust = try LogTrust(origin: Self.origin, key: signer.key, policy: .none)
    let source = Repository.root + "/Tests/TransparencyLogTests/Preloaded/crash.c"
    let build = try await RunningProgram.finish(
      path: "clang", ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, source, "-ldl"])
    try #require(build.end == .exit(0), "\(build.errors)")
  }

  /// Runs writers that end like this, one each, and then one that is not killed. Says whether the first was killed.
  /// Those of an even number publish at once what they find unpublished.
  func isKilled(_ lives: [KilledWriterTests.End], from number: Int = 0) async throws -> Bool {
    let (directory, comment) = (TemporaryDirectory(), Comment("\(lives), seed \(seed)"))
    var (seen, ends, published) = ([TreeHead](), [RunningProgram.End](), UInt64(0))
    for (life, end) in (lives + [KilledWriterTests.End(mode: .kill)]).enumerated() {
      let words = [directory.path + "/log", key, "write", "\(life + number)", "\(Self.size)"]
      let environment = [
        "LD_PRELOAD": library, "CRASH_FOLDER": directory.path, "CRASH_STEP": "\(end.step)",
        "CRASH_FAILURE": "\(end.failure)", "CRASH_MODE": end.mode.rawValue,
      ]
      let output = try await RunningProgram.run("killed-log-writer", words, environment) { program in
        ends.append(try await program.untilEnd())
        #expect(program.errors == "", comment)
        return program.output
      }
      for line in output.split(separator: "\n") where line.hasPrefix("signed ") {
        let note = try SignedNote(#require(Base64.decode(String(line.dropFirst(7)))))
        seen.append(try trust.verify(note).checkpoint.head)
      }
      // What readers see fits before anybody repairs anything, and continues all that they saw before.
      for line in output.split(separator: "\n") where line.hasPrefix("published ") {
        published = max(published, try #require(UInt64(line.dropFirst(10))))
      }
      if published > 0 { #expect(try await verify(directory, since: seen) >= published, comment) }
      if ends.last == .exit(0) { break }
      #expect(ends.last == .signal(SIGKILL), comment)
    }
    try #require(ends.last == .exit(0), comment)
    #expect(try await verify(directory, since: seen) == UInt64(Self.size), comment)
    #expect(seen.allSatisfy { $0.size <= UInt64(Self.size) }, comment)
    return ends.first != .exit(0)
  }

  /// Verifies what readers see, and that it continues those trees that are not ahead of it; returns its size.
  private func verify(_ directory: TemporaryDirectory, since seen: [TreeHead]) async throws -> UInt64 {
    let log = LogDirectory(directory.path + "/log")
    let size = try await LogView.readCheckpoint(of: log, trusting: trust).checkpoint.size
    let verdict = try await LogView.verify(
      log, trusting: trust, since: seen.filter { $0.size <= size }, progress: { _, _ in }, entry: { _, _ in })
    return try verdict.get().checkpoint.checkpoint.size
  }
}
