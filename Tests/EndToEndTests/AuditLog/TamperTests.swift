import Foundation
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// What somebody has done to a log, as three programs judge it: ours, `docs/verify.py`, and Go's sumdb.
@Suite(Python.isThere, GoJudge.isThere, .timeLimit(.minutes(30))) struct TamperTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  /// What each of them says, and whether that is a no.
  private func judge(since kept: [String] = []) async throws -> (ours: String, python: String, go: String, areNo: Bool)
  {
    let key = log.signer.key.text
    let since = kept.flatMap { ["--since", $0] }
    let ours = try await RunningProgram.finish(
      path: RunningProgram.path(of: "siwa"), ["audit", "verify", "--log", log.path, "--vkey", key] + since)
    let python = try await Python.run("docs/verify.py", ["log", log.path, "--vkey", key] + since)
    let go = try await GoJudge.verify(log.path, SampleLog.origin, [log.signer.key, log.witness.key], since: kept)
    return (
      ours.errors, python.errors, go,
      ours.end == .exit(1) && ours.errors.hasPrefix("siwa: NO: ") && python.end == .exit(1)
        && python.errors.hasPrefix("NO: ") && go.hasPrefix("no ")
    )
  }

  @Test func whatNobodyTouchedHolds() async throws {
    try await Tampering.write(log)
    let verdicts = try await judge()
    #expect(!verdicts.areNo && verdicts.ours == "" && verdicts.python == "" && verdicts.go == "ok 700", "\(verdicts)")
    let kept = try await log.note(on: Checkpoint(origin: SampleLog.origin, head: log.head(of: 300)))
    let continued = try await judge(since: [files.write("kept", kept.bytes)])
    #expect(!continued.areNo && continued.ours == "" && continued.go == "ok 700", "\(continued)")
  }

  /// The table of docs/audit.md.
  @Test(arguments: Tampering.allCases)
  func allSayNoAndWhere(tampering: Tampering) async throws {
    try await Tampering.write(log)
    let expected = try await tampering.apply(to: log)
    let verdicts = try await judge(since: expected.since.map { [$0] } ?? [])
    #expect(verdicts.areNo, "\(verdicts)")
    #expect(verdicts.ours.hasPrefix("siwa: NO: \(expected.ours)"), "\(verdicts.ours)")
    #expect(verdicts.python.hasPrefix("NO: \(expected.python)"), "\(verdicts.python)")
    #expect(verdicts.go.hasPrefix("no \(expected.go)"), "\(verdicts.go)")
    let document = try String(contentsOfFile: Repository.root + "/docs/audit.md", encoding: .utf8)
    let row = expected.row(of: tampering)
    #expect(document.contains("\(row)\n"), "docs/audit.md lacks the row \(row)")
  }

  /// Any byte of any bundle or tile: ours names the file, whichever it is.
  @Test func anyByteOfAnyFileCounts() async throws {
    var random = SeededRandom()
    try await Tampering.write(log)
    let paths = [
      "tile/entries/000", "tile/entries/001", "tile/entries/002.p/188", "tile/0/000", "tile/0/001", "tile/0/002.p/188",
      "tile/1/000.p/2",
    ]
    for _ in SeededRandom.rounds(2) {
      for path in paths {
        let bytes = try log.bytes(of: path)
        let (place, bit) = (Int.random(in: bytes.indices, using: &random), UInt8.random(in: 0..<8, using: &random))
        try log.change(path) { $0[place] ^= 1 << bit }
        let verdicts = try await judge()
        let comment: Comment = "\(path), byte \(place), bit \(bit), seed \(random.seed): \(verdicts)"
        #expect(verdicts.areNo && verdicts.ours.contains(path), comment)
        log.replace(path, with: bytes)
      }
    }
    #expect(try await judge().areNo == false, "it is as it was")
  }
}
