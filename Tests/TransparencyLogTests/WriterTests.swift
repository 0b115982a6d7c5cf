import Foundation
import Glibc
import TestSupport
import Testing

@testable import TransparencyLog

@Suite struct WriterTests {
  private static let origin = "example.com/log"
  private let files = TemporaryDirectory()
  private let signer: NoteSigner

  init() throws { signer = try NoteSigner.generate(name: Self.origin).signer }

  private var path: String { files.path + "/log" }

  /// Opens the log, which begins with the first call.
  private func open() throws(LogError) -> LogWriter {
    _ = try LogWriter.begin(in: path, origin: Self.origin)
    return try LogWriter(opening: path, origin: Self.origin)
  }

  private func append(_ range: Range<Int>, to writer: LogWriter) throws {
    for entry in sampleEntries(range.upperBound)[range] { _ = try writer.append(entry) }
  }

  private func publish(_ writer: LogWriter) async throws {
    try writer.publish(await SignedNote.sign(try writer.flush().text, with: signer))
  }

  /// All files of the log but the writer's own, by their paths.
  private var contents: Set<String> {
    let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
    return Set(names.filter { !$0.hasPrefix(".") && !isDirectory($0) })
  }

  private func isDirectory(_ name: String) -> Bool {
    var isDirectory: ObjCBool = false
    return unsafe FileManager.default.fileExists(atPath: "\(path)/\(name)", isDirectory: &isDirectory)
      && isDirectory.boolValue
  }

  private func verify(since older: [TreeHead] = []) async throws -> [[UInt8]] {
    var entries: [[UInt8]] = []
    let trust = try LogTrust(origin: Self.origin, key: signer.key, policy: .none)
    _ = try await LogView.verify(
      LogDirectory(path), trusting: trust, since: older, progress: { _, _ in },
      entry: { index, entry in
        #expect(index == UInt64(entries.count))
        entries.append(unsafe entry.withUnsafeBytes { unsafe Array($0) })
      }
    ).get()
    return entries
  }

  @Test func whatIsAppendedIsThereOnceItIsPublished() async throws {
    let writer = try open()
    #expect(writer.size == 0 && writer.flushed.head == .empty && writer.published == nil && writer.isUnpublished)
    #expect(try writer.append([1]) == 0)
    #expect(try writer.append([2]) == 1)
    #expect(writer.size == 2 && writer.flushed.size == 0 && contents == [])
    let checkpoint = try writer.flush()
    #expect(checkpoint == writer.flushed && checkpoint.head == NaiveTree(entries: [[1], [2]]).head(2))
    #expect(contents == ["tile/0/000.p/2", "tile/entries/000.p/2"])
    try await publish(writer)
    #expect(!writer.isUnpublished)
    #expect(contents == ["checkpoint", "tile/0/000.p/2", "tile/entries/000.p/2"])
    #expect(try await verify() == [[1], [2]])
  }

  /// What looks like a log that never was may be one whose volume is not mounted.
  @Test func noWriterBeginsALog() async throws {
    func open() throws(LogError) -> LogWriter { try LogWriter(opening: path, origin: Self.origin) }
    expect(.absent) { _ = try open() }
    #expect(!FileManager.default.fileExists(atPath: path), "not even its directory")
    try #require(unsafe mkdir(path, 0o755) == 0)
    _ = files.write("log/.somebodys.new", "")
    expect(.absent) { _ = try open() }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: path) == [".somebodys.new"], "where no log is, it is not ours"
    )
    unlink(".somebodys.new")
    #expect(try LogWriter.begin(in: path, origin: Self.origin))
    #expect(try open().size == 0)
  }

  /// It may be what is left of one.
  @Test(arguments: ["keys", "checkpoint.witnessed", "index.sqlite", "anything", ".hidden"])
  func aLogBeginsInAnEmptyDirectory(file: String) throws {
    func begin() throws(LogError) -> Bool { try LogWriter.begin(in: path, origin: Self.origin) }
    try #require(unsafe mkdir(path, 0o755) == 0 && mkdir("\(path)/lost+found", 0o700) == 0)
    for name in [file, ".about-to-sign.new"] { _ = files.write("log/\(name)", "") }
    expect(.conflict) { _ = try begin() }
    unlink(file)
    #expect(try begin(), "what the file system and a killed process have left is in nobody's way")
  }

  @Test func aLogIsBegunOnce() async throws {
    func begin() throws(LogError) -> Bool { try LogWriter.begin(in: path, origin: Self.origin) }
    for origin in ["", "a b"] { expect(.malformed) { _ = try LogWriter.begin(in: path, origin: origin) } }
    #expect(try begin())
    #expect(try !begin())
    do {
      let writer = try open()
      expect(.locked) { _ = try begin() }
      try append(0..<3, to: writer)
      _ = try writer.flush()
    }
    #expect(try !begin())
    #expect(try open().size == 3, "it was signed, perhaps, and nobody has published it")
    try await publish(open())
    #expect(try !begin())
    expect(.wrongOrigin) { _ = try LogWriter.begin(in: path, origin: "example.com/other") }
    #expect(try await verify() == sampleEntries(3))
    for file in ["checkpoint", ".about-to-sign"] { unlink(file) }
    expect(.damaged) { _ = try begin() }
  }

  @Test func anEmptyLogCanBePublishedAndOpenedAgain() async throws {
    try await publish(open())
    #expect(try await verify() == [])
    let writer = try open()
    #expect(writer.size == 0 && !writer.isUnpublished)
  }

  @Test func eachPublishedSizeHasItsPartialFilesUntilTheFullOnesAreThere() async throws {
    let writer = try open()
    try append(0..<255, to: writer)
    try await publish(writer)
    try append(255..<256, to: writer)
    _ = try writer.flush()
    #expect(
      contents == [
        "checkpoint", "tile/0/000.p/255", "tile/entries/000.p/255", "tile/0/000", "tile/entries/000", "tile/1/000.p/1",
      ], "readers still see 255")
    try await publish(writer)
    #expect(contents == ["checkpoint", "tile/0/000", "tile/entries/000", "tile/1/000.p/1"])
    try append(256..<300, to: writer)
    try await publish(writer)
    try append(300..<310, to: writer)
    try await publish(writer)
    #expect(
      contents == [
        "checkpoint", "tile/0/000", "tile/entries/000", "tile/1/000.p/1", "tile/0/001.p/44", "tile/entries/001.p/44",
        "tile/0/001.p/54", "tile/entries/001.p/54",
      ])
    #expect(try await verify() == sampleEntries(310))
  }

  /// Sizes around the edges of tiles, in one step and over several, with a writer of its own each.
  @Test(arguments: [[1], [255], [256], [257], [1, 255, 256, 257], [511, 512, 513], [300, 301, 1000], [1024, 1025]])
  func anotherWriterGoesOnWhereTheLastOneEnded(sizes: [Int]) async throws {
    var heads: [TreeHead] = []
    for size in sizes {
      let writer = try open()
      #expect(writer.size == heads.last?.size ?? 0 && writer.published.map { _ in heads.last } == heads.last.map { $0 })
      try append(Int(writer.size)..<size, to: writer)
      try await publish(writer)
      heads.append(writer.flushed.head)
    }
    #expect(heads == sizes.map { NaiveTree(entries: sampleEntries($0)).head($0) })
    #expect(try await verify(since: heads) == sampleEntries(sizes.last ?? 0))
  }

  @Test(arguments: [false, true])
  func whatWasNotFlushedIsGoneAndWhatWasMayBeSigned(isPublishedFirst: Bool) async throws {
    do {
      let writer = try open()
      try append(0..<300, to: writer)
      try await publish(writer)
      try append(300..<400, to: writer)
      _ = try writer.flush()
      try append(400..<500, to: writer)
    }
    let writer = try open()
    #expect(writer.size == 400 && writer.isUnpublished)
    #expect(writer.flushed.head == NaiveTree(entries: sampleEntries(400)).head(400))
    // Just that checkpoint, or one beyond it.
    if isPublishedFirst { try await publish(writer) }
    try append(400..<410, to: writer)
    try await publish(writer)
    #expect(try await verify(since: [NaiveTree(entries: sampleEntries(400)).head(400)]) == sampleEntries(410))
  }

  @Test func whatLiesBeyondIsOverwritten() async throws {
    let writer = try open()
    try append(0..<200, to: writer)
    try await publish(writer)
    for size in [201, 255] {
      _ = files.write("log/tile/0/000.p/\(size)", "another tree's")
      _ = files.write("log/tile/entries/000.p/\(size)", "another tree's")
    }
    for path in ["tile/0/000", "tile/entries/000"] { _ = files.write("log/\(path)", "another tree's, longer") }
    try append(200..<600, to: writer)
    try await publish(writer)
    #expect(try await verify() == sampleEntries(600))
    #expect(contents.filter { $0.contains("000.p") } == ["tile/1/000.p/2"])
  }

  @Test func onlyTheCheckpointThatWasFlushedIsPublished() async throws {
    let writer = try open()
    try append(0..<3, to: writer)
    let first = try await SignedNote.sign(try writer.flush().text, with: signer)
    try append(3..<5, to: writer)
    let early = Checkpoint(origin: Self.origin, head: NaiveTree(entries: sampleEntries(5)).head(5))
    let notFlushed = try await SignedNote.sign(early.text, with: signer)
    expect(.conflict) { try writer.publish(notFlushed) }
    try writer.publish(first)
    _ = try writer.flush()
    let witness = try Cosigner(name: "witness.example", seed: [UInt8](repeating: 1, count: 32))
    // A witness may be late: readers may still see the older checkpoint.
    let cosigned = try SignedNote(text: first.text, first.signatures + [witness.cosign(first.text, at: 1)])
    try writer.publish(cosigned)
    #expect(writer.published == cosigned && writer.isUnpublished)
    try writer.publish(notFlushed)
    expect(.conflict) { try writer.publish(first) }
    #expect(writer.published == notFlushed && !writer.isUnpublished)
    #expect(try await verify() == sampleEntries(5))
  }

  /// What is not whole yet, under the writer's own names for it.
  private var drafts: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".new") } }
  }

  @Test func whatCannotBeWrittenLeavesNothingBehind() throws {
    let writer = try open()
    try append(0..<3, to: writer)
    // No tile can be written where a file has the name of their folder.
    try Data().write(to: URL(fileURLWithPath: path + "/tile"))
    #expect(throws: LogError.self) { try writer.flush() }
    #expect(try drafts == [])
    try FileManager.default.removeItem(atPath: path + "/tile")
    #expect(try writer.flush().size == 3)
  }

  @Test func whatAKilledWriterHadBegunIsGoneWithTheNext() throws {
    do { _ = try open().flush() }
    for name in [".tile.new", ".checkpoint.new", ".about-to-sign.new"] {
      try Data([1]).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }
    let writer = try open()
    #expect(try drafts == [])
    _ = consume writer
  }

  @Test func flushingNothingIsTheSameCheckpoint() throws {
    let writer = try open()
    try append(0..<3, to: writer)
    let checkpoint = try writer.flush()
    #expect(try writer.flush() == checkpoint)
  }

  @Test func whatIsNotFlushedHasALimit() async throws {
    let writer = try open()
    writer.maximumByteCount = 1 << 20
    let entry = [UInt8](repeating: 7, count: 4000)
    for _ in 0..<258 { _ = try writer.append(entry) }
    expect(.full) { for _ in 0..<10 { _ = try writer.append(entry) } }
    let size = writer.size
    expect(.full) { _ = try writer.append(entry) }
    #expect(try writer.size == size && writer.flush().size == size)
    for index in 0..<200 { #expect(try writer.append(entry) == size + UInt64(index)) }
    try await publish(writer)
    #expect(try await verify().count == Int(size) + 200)
  }

  @Test func entriesHaveAtMost65535Bytes() async throws {
    let writer = try open()
    let largest = [UInt8](repeating: 7, count: 65_535)
    _ = try writer.append(largest)
    expect(.tooLarge) { _ = try writer.append(largest + [7]) }
    _ = try writer.append([])
    try await publish(writer)
    #expect(try await verify() == [largest, []])
  }

  @Test func aSecondWriterIsRefusedAndReadersAreNot() async throws {
    do {
      let writer = try open()
      try append(0..<3, to: writer)
      try await publish(writer)
      expect(.locked) { _ = try open() }
      #expect(try await verify() == sampleEntries(3))
      try append(3..<4, to: writer)
      _ = try writer.flush()
    }
    #expect(try open().size == 4)
  }

  @Test func theNextWriterWaitsForNoProgramThatIsBeingStarted() throws {
    let copies: DescriptorCopies
    do {
      let writer = try open()
      copies = DescriptorCopies(of: path)
      expect(.locked) { _ = try open() }
      #expect(copies.count == 1 && writer.size == 0)
    }
    #expect(try open().size == 0)
    #expect(copies.count == 1, "they were there until now")
  }

  @Test func theLockIsTheDirectorysOwn() throws {
    let writer = try open()
    for name in try FileManager.default.contentsOfDirectory(atPath: path) where name == ".lock" { unlink(name) }
    expect(.locked) { _ = try open() }
    // What it writes goes where its lock is.
    try FileManager.default.moveItem(atPath: path, toPath: files.path + "/moved")
    try append(0..<3, to: writer)
    let head = try writer.flush().head
    #expect(try open().size == 0, "another directory is another log")
    expect(.locked) { _ = try LogWriter(opening: files.path + "/moved", origin: Self.origin) }
    #expect(writer.flushed.head == head)
  }

  @Test func noWriterGoesOnWhereAnotherOneHasWritten() throws {
    let writer = try open()
    try append(0..<3, to: writer)
    let mine = try writer.flush()
    try append(3..<5, to: writer)
    let other = Checkpoint(origin: Self.origin, head: TreeHead(size: 4, root: .leaf([1])))
    _ = files.write("log/.about-to-sign", other.text)
    expect(.conflict) { _ = try writer.flush() }
    unlink(".about-to-sign")
    expect(.conflict) { _ = try writer.flush() }
    #expect(writer.flushed == mine)
    _ = files.write("log/.about-to-sign", mine.text)
    #expect(try writer.flush().size == 5)
  }

  @Test(arguments: [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546] as [UInt32])
  func fileSystemsOfOtherMachinesAreRefused(type: UInt32) {
    #expect(LogFiles.isRemote(type) && !LogFiles.isRemote(0xef53) && !LogFiles.isRemote(0x5846_5342))
  }

  @Test func aLogIsOfOneName() async throws {
    try await publish(open())
    expect(.wrongOrigin) { _ = try LogWriter(opening: path, origin: "example.com/other") }
    for origin in ["", "a b", "a+b", "a\nb", "a\u{0}b", "a\u{2003}b"] {
      expect(.malformed) { _ = try LogWriter(opening: path, origin: origin) }
    }
  }

  @Test func aDirectoryThatOthersCanWriteToIsRefused() throws {
    #expect(unsafe mkdir(path, 0o700) == 0 && chmod(path, 0o777) == 0)
    expect(.failed) { _ = try open() }
    let file = files.write("file", "")
    expect(.failed) { _ = try LogWriter(opening: file, origin: Self.origin) }
    expect(.failed) { _ = try LogWriter.begin(in: files.path + "/not/there", origin: Self.origin) }
  }

  @Test func aDamagedEdgeIsNamedAndNotBuiltUpon() async throws {
    let count = 65_536 + 256 + 41
    do {
      let writer = try open()
      for number in 0..<count { _ = try writer.append(Array("\(number)".utf8)) }
      try await publish(writer)
    }
    for name in ["tile/entries/257.p/41", "tile/0/257.p/41", "tile/1/001.p/1", "tile/2/000.p/1"] {
      try expectFailures(name)
    }
    #expect(try open().size == UInt64(count))
  }

  @Test func whatWasWrittenSinceThePublicationIsReadAtOpening() async throws {
    do {
      let writer = try open()
      try append(0..<256, to: writer)
      try await publish(writer)
      try append(256..<1024, to: writer)
      _ = try writer.flush()
    }
    let all = ["001", "002", "003"].flatMap { ["tile/entries/\($0)", "tile/0/\($0)"] }
    for name in all { try expectFailures(name) }
    // Once it is published only the last ones are read, although there is no edge below.
    try await publish(open())
    for name in all.suffix(2) { try expectFailures(name) }
    #expect(try open().size == 1024)
  }

  private func expectFailures(_ name: String) throws {
    let bytes = try #require(try LogDirectory(path).contents(of: name, limit: 1 << 20))
    var changed = bytes
    changed[bytes.count - 1] ^= 1
    for damaged in [changed, Array(bytes.dropLast()), bytes + [0], []] {
      _ = files.write("log/\(name)", damaged)
      expectFailure(.damaged, name)
    }
    unlink(name)
    expectFailure(.missing, name)
    _ = files.write("log/\(name)", bytes)
  }

  @Test(arguments: ["checkpoint", ".about-to-sign"])
  func aDamagedCheckpointIsNamedToo(name: String) async throws {
    do {
      let writer = try open()
      try append(0..<3, to: writer)
      try await publish(writer)
    }
    let bytes = try #require(try LogDirectory(path).contents(of: name, limit: 1000))
    for damaged in [Array(bytes.dropLast()), Array(bytes.prefix(20)), bytes + [0], [], [0x0a]] {
      _ = files.write("log/\(name)", damaged)
      expectFailure(.damaged, name)
    }
    _ = files.write("log/\(name)", bytes)
    #expect(try open().size == 3)
  }

  private func unlink(_ name: String) { #expect(unsafe Glibc.unlink("\(path)/\(name)") == 0) }

  private func expectFailure(
    _ code: LogError.Code, _ name: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: LogError.self, sourceLocation: sourceLocation) { try open() }
    #expect(
      error?.code == code && error?.path == name, "\(error.map { "\($0)" } ?? "")", sourceLocation: sourceLocation)
  }

  @Test func aLostCheckpointIsNoEmptyLog() async throws {
    do {
      let writer = try open()
      try append(0..<3, to: writer)
      try await publish(writer)
    }
    // The announcement says how far the log goes.
    unlink("checkpoint")
    #expect(try open().size == 3)
    unlink(".about-to-sign")
    expectFailure(.damaged, "checkpoint")
  }

  @Test func anAnnouncementThatWasLostOrRolledBackIsForAnOperator() async throws {
    var old: [UInt8] = []
    do {
      let writer = try open()
      try append(0..<3, to: writer)
      try await publish(writer)
      old = try #require(try LogDirectory(path).contents(of: ".about-to-sign", limit: 1000))
      try append(3..<5, to: writer)
      try await publish(writer)
    }
    for announcement in [nil, old] as [[UInt8]?] {
      if let announcement { _ = files.write("log/.about-to-sign", announcement) } else { unlink(".about-to-sign") }
      expectFailure(.damaged, ".about-to-sign")
      #expect(try LogWriter(opening: path, origin: Self.origin, .fromPublished).size == 5)
      #expect(try open().size == 5, "it is as it was")
    }
  }

  @Test func aCheckpointOfAnotherTreeIsNotBuiltUpon() async throws {
    do {
      let writer = try open()
      try append(0..<300, to: writer)
      try await publish(writer)
    }
    let published = try #require(try LogDirectory(path).contents(of: "checkpoint", limit: 1000))
    // Of the same size, of a smaller one, of a larger one.
    for (size, code, name) in [
      (300, .conflict, ".about-to-sign"), (20, .damaged, "checkpoint"), (301, .damaged, ".about-to-sign"),
    ] as [(UInt64, LogError.Code, String)] {
      let other = Checkpoint(origin: Self.origin, head: TreeHead(size: size, root: .leaf([1])))
      _ = files.write("log/checkpoint", try await SignedNote.sign(other.text, with: signer).bytes)
      expectFailure(code, name)
    }
    _ = files.write("log/checkpoint", published)
    // An older one of the same tree is what a writer leaves that is killed before it publishes.
    let older = Checkpoint(origin: Self.origin, head: NaiveTree(entries: sampleEntries(20)).head(20))
    _ = files.write("log/checkpoint", try await SignedNote.sign(older.text, with: signer).bytes)
    #expect(try open().size == 300)
  }

  @Test func partialFilesThatAKilledWriterLeftAreRemoved() async throws {
    do {
      let writer = try open()
      try append(0..<600, to: writer)
      try await publish(writer)
    }
    #expect(unsafe mkdir("\(path)/tile/0/000.p", 0o755) == 0)
    _ = files.write("log/tile/0/000.p/7", "")
    _ = try open()
    #expect(contents.filter { $0.contains("000.p") } == ["tile/1/000.p/2"])
  }

  @Test func aPartialFileThatCannotBeRemovedStopsNobody() async throws {
    let writer = try open()
    try append(0..<200, to: writer)
    try await publish(writer)
    // No file, and not even an empty directory.
    #expect(unsafe mkdir("\(path)/tile/0/000.p/9", 0o755) == 0)
    _ = files.write("log/tile/0/000.p/9/file", "")
    try append(200..<300, to: writer)
    try await publish(writer)
    #expect(try await verify() == sampleEntries(300))
  }

  @Test func aNoteThatTheLogsKeyHasNotSignedIsNotShown() async throws {
    let (writer, stranger) = (try open(), try NoteSigner.generate(name: Self.origin).signer)
    try append(0..<3, to: writer)
    let text = try writer.flush().text
    let foreign = try await SignedNote.sign(text, with: stranger)
    expect(.unsigned) { try writer.publish(foreign, by: signer.key) }
    let wrong = try SignedNote(text: text, [NoteSignature(by: signer.key, foreign.signatures[0].bytes)])
    expect(.badSignature) { try writer.publish(wrong, by: signer.key) }
    #expect(writer.published == nil)
    try writer.publish(await SignedNote.sign(text, with: signer), by: signer.key)
    #expect(!writer.isUnpublished)
  }

  @Test func onlyAHistoryThatContinuesTheShownOneIsShown() async throws {
    let keys = try (0..<3).map { _ in try NoteSigner.generate(name: Self.origin).signer }
    let writer = try open()
    try append(0..<3, to: writer)
    let first = try await KeyRotation.sign(try writer.flush(), from: signer, to: keys[0])
    let history = try KeyHistory().appending(first)
    expect(.conflict) { try writer.publish(history) }
    try await publish(writer)
    expect(.malformed) { try writer.publish(KeyHistory()) }
    try writer.publish(history)
    try writer.publish(history)
    let other = try await KeyRotation.sign(writer.flushed, from: signer, to: keys[1])
    expect(.conflict) { try writer.publish(KeyHistory().appending(other)) }
    let second = try await KeyRotation.sign(writer.flushed, from: keys[0], to: keys[2])
    try writer.publish(history.appending(second))
    expect(.conflict) { try writer.publish(history) }
    try append(3..<5, to: writer)
    try writer.publish(await SignedNote.sign(try writer.flush().text, with: keys[2]))
    #expect(try await verify() == sampleEntries(5))
  }

  @Test func theHistoryOfKeysIsShownBesideTheCheckpoint() async throws {
    let next = try NoteSigner.generate(name: Self.origin).signer
    let writer = try open()
    try append(0..<3, to: writer)
    try await publish(writer)
    let rotation = try await KeyRotation.sign(writer.flushed, from: signer, to: next)
    try writer.publish(KeyHistory().appending(rotation))
    #expect(try await verify() == sampleEntries(3))
    try append(3..<5, to: writer)
    try writer.publish(await SignedNote.sign(try writer.flush().text, with: next))
    #expect(try await verify() == sampleEntries(5), "who has the first key follows")
    try append(5..<6, to: writer)
    try await publish(writer)
    await #expect(throws: LogFinding.self, "the old key signs no more") { try await verify() }
  }
}
