import LogSupport
import TestSupport
import Testing

@testable import TransparencyLog

/// A log in one file.
@Suite struct ArchiveTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  private var path: String { files.path + "/log.tar" }

  /// Writes the log, at its newest checkpoint, into an archive.
  private func archive() async throws {
    let note = try SignedNote(try log.bytes(of: LogPath.checkpoint))
    let view = LogView(LogDirectory(log.path), at: try Checkpoint(note.text).head)
    var archive = try LogArchiveWriter(creating: path)
    try archive.add(LogPath.checkpoint, note.bytes)
    for file in view.files { try archive.add(file.text, try await view.bytes(of: file)) }
    try archive.finish()
    try archive.publish()
  }

  private var bytes: [UInt8] {
    get throws {
      guard let bytes = try LogDirectory(files.path).contents(of: "log.tar", limit: 1 << 24) else {
        throw LogError(.missing, path, "not there")
      }
      return bytes
    }
  }

  @Test(arguments: [0, 1, 255, 256, 257, 700, 66_000])
  func aLogIsTheSameInOneFile(size: Int) async throws {
    try await log.write([size], sampleEntry)
    try await archive()
    let archive = try LogArchive(path)
    let verified = try await LogView.verify(
      archive, trusting: log.trust, since: [], progress: { _, _ in }, entry: { _, _ in }
    ).get()
    #expect(verified.checkpoint.checkpoint.size == UInt64(size))
    for name in archive.names { #expect(try await archive.read(name, limit: 1 << 24) == log.bytes(of: name)) }
    #expect(try await archive.read("tile/9/000", limit: 1) == nil)
    await expect(.tooLarge) { _ = try await archive.read(LogPath.checkpoint, limit: 10) }
  }

  @Test func theSameLogMakesTheSameBytes() async throws {
    try await log.write([700], sampleEntry)
    try await archive()
    let first = try bytes
    try await archive()
    #expect(try bytes == first)
  }

  /// A reader who comes late finds full files in the places of partial ones, with entries that no checkpoint of his has.
  @Test func aFullFileGivesWhatThePartialOneHad() async throws {
    try await log.write([700], sampleEntry)
    let checkpoint = try log.bytes(of: LogPath.checkpoint)
    try await archive()
    let early = try bytes
    try await log.write([800], sampleEntry)
    log.replace(LogPath.checkpoint, with: checkpoint)
    try await archive()
    #expect(try bytes == early)
  }

  @Test func otherProgramsReadIt() async throws {
    try await log.write([300], sampleEntry)
    try await archive()
    let list = try await RunningProgram.finish(path: "/usr/bin/tar", ["--list", "--file", path])
    #expect(list.end == .exit(0) && list.errors == "")
    #expect(Set(list.output.split(separator: "\n").map(String.init)) == Set(try LogArchive(path).names))
  }

  @Test func whatIsOtherThanWrittenIsRefused() async throws {
    try await log.write([300], sampleEntry)
    try await archive()
    let good = try bytes
    let first = Array(good[..<512])
    func checkedSum(_ change: (inout [UInt8]) -> Void) -> [UInt8] {
      var header = first
      change(&header)
      header.replaceSubrange(148..<156, with: Array("        ".utf8))
      let sum = String(header.reduce(0) { $0 + Int($1) }, radix: 8)
      header.replaceSubrange(148..<156, with: Array("\(String(repeating: "0", count: 6 - sum.count))\(sum)\0 ".utf8))
      return header + good[512...]
    }
    let changes: [(String, [UInt8])] = [
      ("empty", []), ("half a header", Array(good[..<300])), ("cut off", Array(good.dropLast(512))),
      ("cut off in the middle", Array(good[..<2000])), ("longer", good + [0]),
      ("longer by blocks", good + [UInt8](repeating: 0, count: 1024)),
      ("a wrong sum", checkedSum { _ in }.enumerated().map { $0.offset == 148 ? $0.element ^ 1 : $0.element }),
      ("another owner", checkedSum { $0[114] = UInt8(ascii: "7") }),
      ("a time", checkedSum { $0[146] = UInt8(ascii: "7") }),
      ("a directory", checkedSum { $0[156] = UInt8(ascii: "5") }),
      ("a link", checkedSum { $0[156] = UInt8(ascii: "2") }),
      ("a path upwards", checkedSum { $0.replaceSubrange(0..<10, with: Array("../checkpt".utf8)) }),
      ("an absolute path", checkedSum { $0[0] = UInt8(ascii: "/") }), ("a blank", checkedSum { $0[3] = 0x20 }),
      ("a name behind the name", checkedSum { $0[50] = UInt8(ascii: "x") }),
      ("a size in other digits", checkedSum { $0[130] = UInt8(ascii: "9") }),
      ("a size of all", checkedSum { for place in 124..<135 { $0[place] = UInt8(ascii: "7") } }),
      ("a second checkpoint", checkedSum { $0.replaceSubrange(0..<20, with: Array(LogPath.witnessed.utf8)) }),
      ("a file twice", Array(good[..<1024]) + good),
    ]
    for (name, bytes) in changes {
      _ = files.write("other.tar", bytes)
      let error = #expect(throws: LogError.self, "\(name)") { try LogArchive(files.path + "/other.tar") }
      #expect(error?.code == .malformed, "\(name): \(error.map { "\($0)" } ?? "")")
    }
    #expect(throws: LogError.self) { try LogArchive(files.path) }
    #expect(throws: LogError.self) { try LogArchive(files.path + "/none.tar") }
  }

  @Test func whatIsNotWholeLeavesNothingBehind() async throws {
    do {
      var archive = try LogArchiveWriter(creating: path)
      try archive.add("checkpoint", [1])
    }
    #expect(throws: LogError.self) { try LogArchive(path) }
    var unwritable: LogError?
    do throws(LogError) { _ = try LogArchiveWriter(creating: files.path + "/none/log.tar") } catch {
      unwritable = error
    }
    #expect(unwritable?.code == .failed)
    let left = try await RunningProgram.finish(path: "/usr/bin/find", [files.path, "-type", "f"])
    #expect(left.output == "")
  }
}
