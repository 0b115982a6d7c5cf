import LogSupport
import TestSupport
import Testing

@testable import TransparencyLog

/// What we write, as Go's implementation reads it, and what Go writes, as ours does.
@Suite(GoJudge.isThere, .timeLimit(.minutes(30))) struct GoTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  private var path: String { log.path }
  private var keys: [VerifierKey] { [log.signer.key, log.witness.key] }

  private func verdict() async throws -> Result<VerifiedLog, LogFinding> {
    let trust = try LogTrust(
      origin: SampleLog.origin, key: log.signer.key, policy: WitnessPolicy(1, of: [log.witness.key]))
    return try await LogView.verify(
      LogDirectory(path), trusting: trust, since: [], progress: { _, _ in }, entry: { _, _ in })
  }

  @Test(arguments: [[0], [1], [2], [255], [256], [257], [100, 300, 600, 700], [65_000, 66_000]])
  func goFindsNothingWrongWithOurLogs(sizes: [Int]) async throws {
    try await log.write(sizes) { Array("entry \($0)".utf8) }
    #expect(try await GoJudge.verify(path, SampleLog.origin, keys) == "ok \(sizes.last ?? 0)")
    let outcome = try await verdict()
    #expect(throws: Never.self) { try outcome.get() }
    let stranger = try NoteSigner.generate(name: SampleLog.origin).signer.key
    #expect(try await GoJudge.verify(path, SampleLog.origin, [stranger]).hasPrefix("no checkpoint: "))
  }

  @Test func ourProofsAreGoesProofs() async throws {
    let size = 600
    try await log.write([size], sampleEntry)
    let tree = NaiveTree(entries: sampleEntries(size))
    let (head, directory) = (tree.head(size), LogDirectory(path))
    let view = LogView(directory, at: head)
    var (questions, checks, ours) = ([String](), [String](), [String]())
    for number in Array(1..<40) + [255, 256, 257, 400, 511, 512, 513, 598, 599] {
      let (leaf, inclusion) = try await view.inclusionProof(of: UInt64(number))
      let (older, consistency) = try await view.consistencyProof(from: UInt64(number))
      let hashes = [inclusion.hashes, consistency.hashes].map { $0.map(\.description).joined(separator: ",") }
      questions += ["inclusion \(number)", "consistency \(number)"]
      ours += hashes
      checks.append("inclusion \(number) \(leaf) \(size) \(head.root) \(hashes[0])")
      checks.append("consistency \(number) \(older.root) \(size) \(head.root) \(hashes[1])")
    }
    #expect(try await GoJudge.answers(["prove", path, "\(size)", "\(head.root)"], to: questions) == ours)
    #expect(try await GoJudge.answers(["check"], to: checks) == checks.map { _ in "yes" })
  }

  @Test func everySmallProofIsRightInTheEyesOfGo() async throws {
    let entries = sampleEntries(24)
    let tree = NaiveTree(entries: entries)
    var lines: [String] = []
    for size in 1...24 {
      let (head, view) = (tree.head(size), LogView(MemoryLog(Array(entries.prefix(size))), at: tree.head(size)))
      for number in 0..<UInt64(size) {
        let (leaf, inclusion) = try await view.inclusionProof(of: number)
        let (older, consistency) = try await view.consistencyProof(from: number + 1)
        let hashes = [inclusion.hashes, consistency.hashes].map { $0.map(\.description).joined(separator: ",") }
        lines.append("inclusion \(number) \(leaf) \(size) \(head.root) \(hashes[0])")
        lines.append("consistency \(number + 1) \(older.root) \(size) \(head.root) \(hashes[1])")
      }
    }
    let answers = try await GoJudge.answers(["check"], to: lines)
    #expect(answers.count == lines.count && zip(lines, answers).filter { $1 != "yes" }.map(\.0) == [])
    let wrong = lines.map { $0.replacing(" \(tree.head(24).root) ", with: " \(tree.head(23).root) ") }
    #expect(try await GoJudge.answers(["check"], to: wrong).contains("no"))
  }

  @Test func goSignsWithOurKeysAsWeDo() async throws {
    let text = "example.com/log\n0\n\(MerkleHash.empty)\n"
    let signed = try await GoJudge.run(["sign", log.privateKey], input: text, accepting: [0])
    #expect(try await SignedNote.sign(Array(text.utf8), with: log.signer).bytes == Array("\(signed)\n".utf8))
  }
}
