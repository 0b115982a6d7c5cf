import AccountEvents
import AppleID
import EventLoop
import Foundation
import TestSupport
import Testing

/// What a restart finds, and what it does not believe.
@Loop @Suite struct AppleKeysCacheTests {
  private static let apple = "https://appleid.apple.com/auth/keys"

  private let directory = TemporaryDirectory()
  private let thread = BlockingThread(named: "files")
  private var path: String { directory.path + "/keys.json" }

  private func cache(from source: String = apple) -> AppleKeysCache {
    AppleKeysCache(path: path, source: source, thread: thread)
  }

  /// Leaves a file behind, as a run does that fetched this answer.
  private func fetchOnce(_ answer: [UInt8]) async {
    let rig = KeysRig(cache: cache())
    await rig.start(.success(answer))
    await rig.stop()
  }

  @Test func keepsTheSetOverARestart() async {
    await fetchOnce(KeysRig.set("a", "b"))
    let rig = KeysRig(cache: cache())
    rig.calendar.pass(.seconds(600))
    await rig.keys.restore()
    #expect(rig.ids == ["a", "b"])
    #expect(rig.keys.age == .seconds(600))
    #expect(rig.keys.current.signingKeys.map(\.firstSeen) == [Forge.now, Forge.now])
    #expect(rig.metric("siwa_apple_keys_age_seconds") == "600")

    // Apple is asked at once all the same; while it does not answer, the old set serves.
    await rig.start(.failure(AppleKeysTests.unreachable))
    #expect(await rig.lookUp("a").summary == "found in a b")
    rig.pass(.seconds(2))
    await rig.settle(.success(KeysRig.set("c")))
    #expect(rig.ids == ["c"])
    #expect(rig.keys.age == .zero)
    await rig.stop()
  }

  @Test func keepsOverARestartSinceWhenWeHaveAKey() async {
    let rig = KeysRig(cache: cache())
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b", "a")))
    await rig.stop()
    let next = KeysRig(cache: cache())
    next.calendar.pass(.seconds(7200))
    await next.keys.restore()
    let seen = [Forge.now + .seconds(3600), Forge.now]
    #expect(next.keys.current.signingKeys.map(\.firstSeen) == seen)
    await next.start(.success(KeysRig.set("b", "a", "c")))
    #expect(next.keys.current.signingKeys.map(\.firstSeen) == seen + [Forge.now + .seconds(7200)])
    await next.stop()
  }

  @Test func keepsOverARestartWhatAppleHasNoMore() async {
    let rig = KeysRig(cache: cache())
    await rig.start(.success(KeysRig.set("a", "b")))
    for _ in 0..<2 {
      rig.pass(.seconds(3600))
      await rig.settle(.success(KeysRig.set("b")))
    }
    await rig.stop()
    let next = KeysRig(cache: cache())
    next.calendar.pass(.seconds(7200))
    await next.keys.restore()
    #expect(next.ids == ["b"])
    #expect(next.keys.current.retiredKeys == rig.keys.current.retiredKeys)
    #expect(next.keys.current.retiredKeys.map(\.lastSeen) == [Forge.now])
  }

  @Test func replacesTheFileAsAWhole() async throws {
    await fetchOnce(KeysRig.set("a"))
    let first = try FileManager.default.attributesOfItem(atPath: path)
    let reader = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    await fetchOnce(KeysRig.set("a", "b"))
    let second = try FileManager.default.attributesOfItem(atPath: path)
    #expect(second[.posixPermissions] as? Int == 0o600)
    #expect(first[.systemFileNumber] as? Int != second[.systemFileNumber] as? Int)
    // Who had opened the old file still reads all of it.
    let old = try #require(try reader.readToEnd())
    #expect(String(decoding: old, as: UTF8.self).contains(String(decoding: KeysRig.set("a"), as: UTF8.self)))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["keys.json"])
  }

  @Test func startsWithoutAFile() async {
    let rig = KeysRig(cache: cache())
    await rig.keys.restore()
    #expect(rig.ids == [])
    #expect(rig.log.lines.isEmpty)
    #expect(rig.failures(.cacheUnusable) == "0")
  }

  @Test func goesOnWhereTheFileCannotBeWritten() async {
    let rig = KeysRig(
      cache: AppleKeysCache(path: directory.path + "/none/keys.json", source: Self.apple, thread: thread))
    await rig.start(.success(KeysRig.set("a")))
    #expect(rig.ids == ["a"])
    await rig.stop()
    #expect(rig.failures(.cacheUnwritable) == "1")
    #expect(rig.log.lines.last?.contains(#""keys.reason":"cache-unwritable""#) == true)
  }

  @Test(.timeLimit(.minutes(30))) func aDiskThatHangsKeepsNobodyFromApplesNextAnswer() async {
    let pipe = Pipe()
    async let hanging: Void = thread.run { _ = pipe.fileHandleForReading.availableData }
    let rig = KeysRig(cache: cache())
    await rig.start(.success(KeysRig.set("a")))
    for key in ["b", "c"] {
      rig.pass(.seconds(3600))
      await rig.settle(.success(KeysRig.set(key)))
      #expect(rig.ids == [key])
    }
    pipe.fileHandleForWriting.closeFile()
    await hanging
    await rig.stop()
    // The last one is what is kept.
    let next = KeysRig(cache: cache())
    await next.keys.restore()
    #expect(next.ids == ["c"])
  }

  @Test func doesNotTakeTheKeysOfARehearsalForApples() async {
    await fetchOnce(KeysRig.set("a"))
    let rig = KeysRig(cache: cache(from: "https://127.0.0.1:8443/auth/keys"))
    await rig.keys.restore()
    await expectRefused(rig)
  }

  /// Contents of the file that are not believed. `SET` stands for a good answer.
  nonisolated static let contents: [String] = [
    "", "\u{0}", "SET", "{}", "[]", #"{"source":"SOURCE","fetchedAt":1,"answer":SET"#,
    #"{"source":"SOURCE","fetchedAt":1,"answer":SET}x"#, #"{"source":"SOURCE","answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":-1,"answer":SET}"#, #"{"source":"SOURCE","fetchedAt":1.5,"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":9007199254740991,"answer":SET}"#, #"{"fetchedAt":1,"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":1}"#, #"{"source":"SOURCE","fetchedAt":1,"answer":null}"#,
    #"{"source":"SOURCE","fetchedAt":1,"answer":{"keys":[]}}"#,
    #"{"source":"SOURCE","fetchedAt":1,"firstSeen":1,"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":1,"firstSeen":{"a":-1},"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":1,"firstSeen":{"":1},"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":1,"answer":SET,"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":1,"retired":{},"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":1,"retired":[{"kid":"r","n":"AQAB","firstSeen":1,"lastSeen":1}],"answer":SET}"#,
    #"{"source":"SOURCE","fetchedAt":1,"retired":[{"kid":"r","firstSeen":1,"lastSeen":1}],"answer":SET}"#,
    #"{"source":"SOURCE","source":"SOURCE","fetchedAt":1,"answer":SET}"#,
    String(repeating: " ", count: 100_000),
  ]

  @Test(arguments: contents)
  func reportsAndIgnoresWhatCannotBeBelieved(content: String) async {
    _ = directory.write("keys.json", Self.filled(content))
    let rig = KeysRig(cache: cache())
    await rig.keys.restore()
    await expectRefused(rig)
  }

  @Test func believesAGoodFile() async {
    _ = directory.write("keys.json", Self.filled(#"{"source":"SOURCE","fetchedAt":1,"answer":SET,"new":[1]}"#))
    let rig = KeysRig(cache: cache())
    await rig.keys.restore()
    #expect(rig.ids == ["a"])
  }

  @Test(arguments: [0o620, 0o602, 0o666] as [mode_t])
  func believesNoFileThatOthersCanWrite(mode: mode_t) async {
    _ = directory.write("keys.json", Self.filled(#"{"source":"SOURCE","fetchedAt":1,"answer":SET}"#), mode: mode)
    let rig = KeysRig(cache: cache())
    await rig.keys.restore()
    await expectRefused(rig)
  }

  @Test func readsNoPipeAndNoDirectory() async {
    #expect(unsafe mkfifo(path, 0o600) == 0)
    let rig = KeysRig(cache: cache())
    await rig.keys.restore()
    await expectRefused(rig)
    let other = KeysRig(cache: AppleKeysCache(path: directory.path, source: Self.apple, thread: thread))
    await other.keys.restore()
    await expectRefused(other)
  }

  private func expectRefused(_ rig: KeysRig, sourceLocation: SourceLocation = #_sourceLocation) async {
    #expect(rig.ids == [], sourceLocation: sourceLocation)
    #expect(rig.keys.age == nil, sourceLocation: sourceLocation)
    #expect(rig.failures(.cacheUnusable) == "1", sourceLocation: sourceLocation)
    #expect(rig.log.lines.count == 1, sourceLocation: sourceLocation)
    #expect(
      rig.log.lines.first?.contains(#""keys.reason":"cache-unusable""#) == true, sourceLocation: sourceLocation)
  }

  private static func filled(_ content: String) -> String {
    content.replacingOccurrences(of: "SOURCE", with: apple)
      .replacingOccurrences(of: "SET", with: String(decoding: KeysRig.set("a"), as: UTF8.self))
  }
}
