import AccountEvents
import AccountServices
import AccountStore
import AuditSupport
import EventLoop
import Glibc
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// `siwa audit`, as an auditor uses it.
@Loop @Suite(.serialized, .timeLimit(.minutes(30))) struct AuditCommandTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  private func siwa(
    _ words: [String], at place: String? = nil
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let location = words[0] == "check" ? [] : ["--log", place ?? log.path]
    return try await run(words + location + ["--vkey", log.signer.key.text])
  }

  private func run(_ words: [String]) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", ["audit"] + words, [:]) { program in
      try await program.outcome()
    }
  }

  private func write(_ history: SampleHistory) async throws {
    let entries = history.entries
    try await log.write([entries.count]) { entries[$0].bytes }
  }

  private static var inOrder: SampleHistory {
    var history = SampleHistory()
    history.comes("met", at: 0)
    history.isDone("met", at: 10)
    return history
  }

  // MARK: Verification

  @Test func aCheckpointThatWasKeptHoldsTheLogToIt() async throws {
    try await log.write([600], sampleEntry)
    let kept = files.path + "/kept"
    let first = try await siwa(["verify", "--keep", kept])
    #expect(first.end == .exit(0) && first.output.hasSuffix("All of it holds.\n"), "\(first)")
    try await log.write([700], sampleEntry)
    let second = try await siwa(["verify", "--since", kept, "--keep", kept])
    #expect(second.end == .exit(0) && second.output.contains("Continues   the 600 entries of "), "\(second)")
    let (cut, split) = (
      try SampleLog(in: files.path + "/cut", signer: log), try SampleLog(in: files.path + "/split", signer: log)
    )
    try await cut.write([600], sampleEntry)
    try await split.write([700]) { $0 == 5 ? [1] : sampleEntry($0) }
    for (other, kind) in [(cut, "shrunk"), (split, "split-view")] {
      let outcome = try await siwa(["verify", "--since", kept], at: other.path)
      #expect(outcome.end == .exit(1) && outcome.errors.contains("siwa: NO: \(kind): checkpoint"), "\(outcome)")
    }
  }

  @Test func witnessesAreAskedFor() async throws {
    try await log.write([3], sampleEntry)
    let good = try await siwa(["verify", "--witness", log.witness.key.text])
    #expect(good.end == .exit(0) && good.output.contains("Cosigned by witness.example/1\n"), "\(good)")
    let other = try Cosigner(name: "witness.example/2", seed: [UInt8](repeating: 7, count: 32)).key.text
    let none = try await siwa(["verify", "--witness", other])
    #expect(none.end == .exit(1) && none.errors.contains("NO: not-cosigned"), "\(none)")
    let senseless = try await siwa(["verify", "--witness", other, "--quorum", "2"])
    #expect(senseless.end == .exit(2) && senseless.errors.contains("--quorum"), "\(senseless)")
  }

  @Test func whatCannotBeReadIsNoVerdict() async throws {
    #expect(try await siwa(["verify"], at: "http://127.0.0.1:9/log").end == .exit(3))
    #expect(try await siwa(["verify"], at: "http://example.com/log").end == .exit(1))
    for command in ["verify", "completeness"] {
      let mistyped = try await siwa([command], at: files.path + "/lgo")
      #expect(mistyped.end == .exit(3) && mistyped.errors.hasSuffix(": No such file or directory\n"), "\(mistyped)")
    }
    let keyless = try await run(["verify", "--log", log.path, "--config", files.write("siwa.yaml", "audit: {}\n")])
    #expect(keyless.end == .exit(2) && keyless.errors.contains("--vkey"), "\(keyless)")
  }

  // MARK: Judgement

  @Test func completenessEndsWithOneWhereSomethingIsOverdue() async throws {
    var history = Self.inOrder
    try await write(history)
    let good = try await siwa(["completeness"])
    #expect(good.end == .exit(0) && good.output.contains("Met          1, 0 of them late"), "\(good)")
    history.comes("late", .consentRevoked, at: 20)
    history.does(.noToken, "late", .consentRevoked, by: .tokenRevoker, at: 21)
    try await write(history)
    let overdue = try await siwa(["completeness"])
    #expect(overdue.end == .exit(1), "\(overdue)")
    #expect(overdue.output.hasPrefix("overdue  ") && overdue.output.contains("waits for data-eraser, email-relay"))
    let long = try await siwa(["completeness", "--deadline", "3650d", "--json"])
    #expect(long.end == .exit(0) && long.output.contains(#""overdue":false"#), "\(long)")
    for words in [["--to", "2026-01-01T00:00:10Z"], ["--without", "data-eraser", "--without", "email-relay"]] {
      #expect(try await siwa(["completeness"] + words).end == .exit(0), "\(words)")
    }
    history.misses(1..<2, of: .accountEvents, at: 30)
    try await write(history)
    let gap = try await siwa(["completeness", "--from", "2026-01-01T00:00:25Z"])
    #expect(gap.end == .exit(1) && gap.output.contains("apple.account-events.v1/3 1–2  missing"), "\(gap)")
  }

  @Test func anEventIsExplained() async throws {
    try await write(Self.inOrder)
    let told = try await siwa(["explain", "met"])
    #expect(told.end == .exit(0) && told.output.contains("Met 12 s after it came."), "\(told)")
    for word in ["happened", "signed", "came", "token-revoker", "data-eraser", "email-relay"] {
      #expect(told.output.contains("  \(word) "))
    }
    #expect(try await siwa(["explain", "met", "--json"]).output.contains(#""what":"data-eraser""#))
    #expect(try await siwa(["explain", "unknown"]).end == .exit(1))
  }

  // MARK: What is handed out

  @Test(Python.isThere) func receiptsAreCheckedByUsAndByPython() async throws {
    try await write(Self.inOrder)
    let written = try await siwa(["receipt", "met", "-o", files.path + "/receipts"])
    let paths = written.output.split(separator: "\n").map(String.init)
    #expect(written.end == .exit(0) && paths.count == 5, "\(written)")
    for path in paths {
      #expect(try await siwa(["check", path]).output.hasSuffix("The log has this entry.\n"))
      #expect(try await Python.run("docs/verify.py", ["receipt", path, "--vkey", log.signer.key.text]).end == .exit(0))
    }
    let other = try NoteSigner.generate(name: SampleLog.origin).signer.key.text
    #expect(try await run(["check", paths[0], "--vkey", other]).end == .exit(1))
    #expect(try await siwa(["check", files.path + "/none"]).end == .exit(3))
    #expect(try await siwa(["receipt", "unknown"]).end == .exit(1))
  }

  @Test(Python.isThere) func aBundleIsVerifiedByUsAndByPython() async throws {
    try await log.write([700], sampleEntry)
    let bundle = files.path + "/audit.tar"
    let words = ["bundle", "--without-apple-keys", "-o", bundle]
    let written = try await siwa(words)
    #expect(written.end == .exit(0), "\(written)")
    #expect(try await siwa(["verify"], at: bundle).end == .exit(0))
    let judged = try await Python.run("docs/verify.py", ["log", bundle, "--vkey", log.signer.key.text])
    #expect(judged.end == .exit(0), "\(judged)")
    #expect(unsafe unlink(bundle) == 0)
    _ = try await Tampering.entryChanged.apply(to: log)
    #expect(try await siwa(words).end == .exit(1))
    #expect(unsafe access(bundle, F_OK) != 0, "what does not hold is not handed out")
  }

  @Test(.enabled("needs Debian's chromium") { unsafe access("/usr/bin/chromium", X_OK) == 0 })
  func aBrowserShowsTheReport() async throws {
    try await write(Self.inOrder)
    let folder = files.path + "/report"
    let written = try await siwa(["report", "-o", folder])
    #expect(written.end == .exit(0), "\(written)")
    let picture = files.path + "/report.png"
    let browser = [
      // The tests may run as root, in a container: what is opened is our own page, which loads nothing.
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1100,2600",
      "--user-data-dir=\(files.path)/profile",
    ]
    let shown = try await RunningProgram.finish(
      path: "/usr/bin/chromium", browser + ["--dump-dom", "file://\(folder)/report.html"])
    #expect(shown.end == .exit(0) && shown.output.contains("Every obligation of this period is met"), "\(shown)")
    #expect(shown.output.contains("</svg>") && !shown.output.contains("&lt;p&gt;"), "no markup is shown as text")
    let drawn = try await RunningProgram.finish(
      path: "/usr/bin/chromium", browser + ["--screenshot=\(picture)", "file://\(folder)/report.html"])
    var status = stat()
    let isThere = unsafe stat(picture, &status) == 0
    #expect(drawn.end == .exit(0) && isThere && status.st_size > 20_000, "\(drawn)")
  }

  // MARK: Keys

  @Test func keysAreMadeAndRotated() async throws {
    let (old, new) = (files.path + "/old", files.path + "/new")
    let made = try await run(["create-key", SampleLog.origin, new])
    #expect(made.end == .exit(0) && made.output.hasPrefix("\(SampleLog.origin)+"), "\(made)")
    var status = stat()
    #expect(unsafe stat(new, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(try await run(["create-key", SampleLog.origin, new]).end == .exit(1), "it stays as it is")
    #expect(try await run(["create-key", "a b", files.path + "/bad"]).end == .exit(2))
    _ = files.write("old", log.privateKey)
    try await log.write([3], sampleEntry)
    let words = ["rotate-key", "--old", old, "--new", new]
    let settings = ["--config", files.write("siwa.yaml", "audit: { log: log, key: '\(log.signer.key.text)' }\n")]
    let wrong = try await run(["rotate-key", "--old", new, "--new", old] + settings)
    #expect(wrong.end == .exit(1) && wrong.errors.contains("--old: not the key that signs now"), "\(wrong)")
    do {
      let writer = try log.writer()
      #expect(try await run(words + settings).end == .exit(3), "somebody writes")
      _ = consume writer
    }
    let rotated = try await run(words + settings)
    #expect(rotated.end == .exit(0) && rotated.output.contains("signs from 3 entries on"), "\(rotated)")
    let verified = try await siwa(["verify"])
    #expect(verified.end == .exit(0), "\(verified)")
  }

  /// The keys are not where the command is: programs sign, each of which may say no.
  @Test func keysBehindProgramsAreRotated() async throws {
    let (next, text) = try NoteSigner.generate(name: SampleLog.origin)
    try await log.write([3], sampleEntry)
    let (old, new) = (
      try SigningScript(of: log.privateKey, in: files, named: "old").path,
      try SigningScript(of: text, in: files, named: "new").path
    )
    let settings = ["--log", log.path, "--vkey", log.signer.key.text]
    let both = ["--old-vkey", log.signer.key.text, "--new-signer", new, "--new-vkey", next.key.text]
    let refused = try await run(["rotate-key", "--old-signer", old] + settings)
    #expect(
      refused.end == .exit(2)
        && refused.errors.contains("expected either --old FILE, or --old-signer PROGRAM with --old-vkey VKEY"),
      "\(refused)")
    let wrong = try await run(["rotate-key", "--old-signer", new] + both + settings)
    #expect(wrong.end == .exit(1) && wrong.errors.contains("the signer's signature is not one by"), "\(wrong)")
    #expect(try LogDirectory(log.path).contents(of: LogPath.keys, limit: 10_000) == nil)
    let rotated = try await run(["rotate-key", "--old-signer", old] + both + settings)
    #expect(rotated.end == .exit(0) && rotated.output.contains("\(next.key) signs from 3 entries on"), "\(rotated)")
    let verified = try await siwa(["verify"])
    #expect(verified.end == .exit(0), "\(verified)")
  }
}
