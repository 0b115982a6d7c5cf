import AccountEvents
import AppleID
import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

/// How the set in use is kept fresh, and what never takes its place.
@Loop @Suite struct AppleKeysTests {
  nonisolated static let unreachable = AppleKeysFailure(.unreachable, "connect: nobody there")

  @Test func fetchesAtOnceAndThenAheadOfTime() async {
    let rig = KeysRig()
    #expect(rig.ids == [])
    #expect(rig.keys.age == nil)
    await rig.start(.success(KeysRig.set("a", "b")))
    #expect(rig.ids == ["a", "b"])
    #expect(rig.alarm.left == .seconds(3600))

    rig.pass(.seconds(3599))
    #expect(rig.keys.age == .seconds(3599))
    #expect(rig.source.fetches == 1)
    rig.pass(.seconds(1))
    await rig.settle(.success(KeysRig.set("b", "c")))
    #expect(rig.ids == ["b", "c"])
    #expect(rig.keys.age == .zero)
    #expect(rig.source.fetches == 2)
    await rig.stop()
  }

  @Test func comesUpToATenthEarlier() async {
    let rig = KeysRig(jitter: 0.5)
    await rig.start(.success(KeysRig.set("a")))
    #expect(rig.alarm.left == .seconds(3420))
    await rig.stop()
  }

  @Test func servesTheOldSetWhileAppleIsUnreachableAndTriesAgainEverLessOften() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    for wait in [2, 4, 8, 16, 30, 30, 30] {
      await rig.settle(.failure(Self.unreachable))
      #expect(rig.alarm.left == .seconds(wait))
      #expect(rig.ids == ["a"])
      rig.pass(.seconds(wait))
    }
    #expect(rig.failures(.unreachable) == "7")
    #expect(rig.metric("siwa_apple_keys_fetches_total") == "8")
    #expect(rig.metric("siwa_apple_keys_age_seconds") == "3720")

    // And all is as before once Apple is back.
    await rig.settle(.success(KeysRig.set("b")))
    #expect(rig.ids == ["b"])
    #expect(rig.alarm.left == .seconds(3600))
    rig.pass(.seconds(3600))
    await rig.settle(.failure(Self.unreachable))
    #expect(rig.alarm.left == .seconds(2))
    await rig.stop()
  }

  @Test func leavesOffUpToHalfOfARetry() async {
    let rig = KeysRig(jitter: 0.5)
    await rig.start(.failure(Self.unreachable))
    #expect(rig.alarm.left == .milliseconds(1500))
    await rig.stop()
  }

  /// Answers of status 200 that are no set, or no good one.
  nonisolated static let badSets: [(String, [UInt8])] = [
    ("nothing", []), ("a page", Array("<html><body>Sign in to the Wi-Fi</body></html>".utf8)),
    ("garbage", [0xff, 0x00, 0x7b]), ("half a set", Array(KeysRig.set("b").dropLast(20))),
    ("an empty set", Array(#"{"keys":[]}"#.utf8)), ("one kid twice", KeysRig.set("b", "b")),
    ("a good key and a small one", small()),
    ("more than a set can be", KeysRig.set("b") + Array(repeating: 0x20, count: 65_536)),
  ]

  nonisolated private static func small() -> [UInt8] {
    let text = String(decoding: KeysRig.set("b", "c"), as: UTF8.self)
    let end = text.lastIndex(of: "e") ?? text.endIndex
    return Array((text[..<end] + #"e":"Aw"}]}"#).utf8)
  }

  @Test(arguments: badSets)
  func refusesABadSetWholeAndKeepsTheOldOne(name: String, answer: [UInt8]) async throws {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    await rig.settle(.success(answer))
    #expect(rig.ids == ["a"])
    #expect(rig.keys.age == .seconds(3600))
    #expect(rig.failures(.unfitSet) == "1")
    #expect(rig.alarm.left == .seconds(2))
    let warnings = rig.log.lines.filter { $0.contains("warning") }
    #expect(warnings.count == 1)
    #expect(warnings.first?.contains(#""keys.reason":"unfit-set""#) == true)
    await rig.stop()
  }

  @Test func refusesASetInWhichAKidNamesAnotherKeyThanBefore() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a", "b")))
    let old = rig.keys.current.signingKey(KeysRig.id("a"))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set(["c": Forge.key, "a": Forge.stranger])))
    #expect(rig.ids == ["a", "b"])
    #expect(rig.keys.current.signingKey(KeysRig.id("a")) == old)
    #expect(rig.failures(.unfitSet) == "1")
    #expect(rig.log.lines.last?.contains("key 2 of the set has the kid of a key that we have") == true)
    await rig.stop()
  }

  @Test func takesAKeyBackThatWasGone() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a", "b")))
    for (set, ids) in [(KeysRig.set("b"), ["b"]), (KeysRig.set("a", "b"), ["a", "b"])] {
      rig.pass(.seconds(3600))
      await rig.settle(.success(set))
      #expect(rig.ids == ids)
    }
    // While what it signed may still come, its kid is nobody else's; then it is anybody's.
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b")))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set(["a": Forge.stranger, "b": Forge.key])))
    #expect(rig.ids == ["b"] && rig.failures(.unfitSet) == "1")
    rig.pass(.seconds(86_400))
    await rig.settle(.success(KeysRig.set(["a": Forge.stranger, "b": Forge.key])))
    #expect(rig.ids == ["a", "b"])
    await rig.stop()
  }

  @Test func aClockThatWasAheadHasNoRetiredKeyBelievedForLonger() async {
    let rig = KeysRig()
    rig.calendar.pass(.seconds(30 * 86_400))
    await rig.start(.success(KeysRig.set("a", "b")))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b")))
    rig.calendar.pass(.seconds(-30 * 86_400))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b")))
    #expect(rig.keys.current.retiredKeys.map(\.lastSeen) == [rig.calendar.now])
    rig.pass(.seconds(86_400 + 3600))
    await rig.settle(.success(KeysRig.set("b")))
    #expect(rig.keys.current.retiredKeys.isEmpty)
    await rig.stop()
  }

  @Test func remembersAKeyThatIsGoneForAsLongAsWhatItSignedIsValid() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a", "b")))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b")))
    for hours in 1..<24 {
      let retired = rig.keys.current.retiredKeys
      #expect(retired.map(\.key.id.text) == ["a"] && retired.map(\.lastSeen) == [Forge.now], "after \(hours) hours")
      #expect(rig.metric("siwa_apple_keys_retired") == "1")
      rig.pass(.seconds(3600))
      await rig.settle(.success(KeysRig.set("b")))
    }
    rig.pass(.seconds(2 * 3600))
    await rig.settle(.success(KeysRig.set("b")))
    #expect(rig.keys.current.retiredKeys.isEmpty)
    await rig.stop()
  }

  /// Nobody could ask Apple for days, and what the old key has signed until just before is still on its way.
  @Test func remembersAKeyThatWentWhileAppleCouldNotBeAskedFromWhenItIsMissed() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a", "b")))
    rig.pass(.seconds(3 * 86_400))
    await rig.settle(.success(KeysRig.set("b")))
    let retired = rig.keys.current.retiredKeys
    #expect(retired.map(\.lastSeen) == [Forge.now] && retired.map(\.missedSince) == [Forge.now + .seconds(3 * 86_400)])
    rig.pass(.seconds(86_400 - 3600))
    await rig.settle(.success(KeysRig.set("b")))
    #expect(rig.keys.current.retiredKeys == retired)
    rig.pass(.seconds(2 * 3600))
    await rig.settle(.success(KeysRig.set("b")))
    #expect(rig.keys.current.retiredKeys.isEmpty)
    await rig.stop()
  }

  @Test func saysOnceWhichKeysItPassesOver() async throws {
    let rig = KeysRig()
    let text = String(decoding: KeysRig.set("a"), as: UTF8.self)
    let foreign = Array(text.replacingOccurrences(of: "[{", with: #"[{"kty":"EC","kid":"e"},{"kty":"EC"},{"#).utf8)
    await rig.start(.success(foreign))
    rig.pass(.seconds(3600))
    await rig.settle(.success(foreign))
    #expect(rig.ids == ["a"] && rig.metric("siwa_apple_keys_foreign") == "2")
    let lines = rig.log.lines.filter { $0.contains("passed over") }
    #expect(lines.count == 1 && lines.first?.contains(#""keys.id":"e""#) == true)
    await rig.stop()
  }

  @Test func tellsWhatApplesClockSays() async {
    let rig = KeysRig()
    var dates: [Timestamp] = []
    rig.keys.whenDated = { dates.append($0) }
    await rig.start(.success(KeysRig.set("a")))
    rig.source.date = Forge.now
    rig.pass(.seconds(3600))
    await rig.settle(.success([]))
    #expect(dates == [Forge.now], "though the set was none")
    await rig.stop()
  }

  @Test func knowsSinceWhenItHasAKey() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b", "a")))
    let seen = rig.keys.current.signingKeys.map(\.firstSeen)
    #expect(seen == [Forge.now + .seconds(3600), Forge.now])
    await rig.stop()
  }

  @Test(arguments: AppleKeysFailure.Reason.allCases)
  func countsAndLogsAFailureOnceWithItsReason(reason: AppleKeysFailure.Reason) async {
    let rig = KeysRig()
    await rig.start(.failure(AppleKeysFailure(reason, "why")))
    for other in AppleKeysFailure.Reason.allCases { #expect(rig.failures(other) == (other == reason ? "1" : "0")) }
    #expect(rig.log.lines.count == 1)
    #expect(rig.log.lines.first?.contains(#""keys.reason":"\#(reason.rawValue)","keys.detail":"why""#) == true)
    await rig.stop()
  }

  @Test func saysWhenTheKeysChanged() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a", "b")))
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b", "a")))  // the same set: Apple's order is not stable
    rig.pass(.seconds(3600))
    await rig.settle(.success(KeysRig.set("b", "c")))
    #expect(rig.log.lines.count == 2)
    #expect(rig.log.lines.first?.contains(#""keys.ids":"a b""#) == true)
    #expect(rig.log.lines.last?.contains(#""keys.ids":"b c""#) == true)
    await rig.stop()
  }

  @Test func tellsMetricsThatThereAreNoKeys() async {
    let rig = KeysRig()
    #expect(rig.metric("siwa_apple_keys_age_seconds") == "+Inf")
    #expect(rig.metric("siwa_apple_keys") == "0")
    await rig.start(.success(KeysRig.set("a", "b")))
    #expect(rig.metric("siwa_apple_keys_age_seconds") == "0")
    #expect(rig.metric("siwa_apple_keys") == "2")
    await rig.stop()
  }

  @Test func endsAFetchWithItsTaskAndCountsNoFailure() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    await rig.source.untilAsked()
    await rig.stop()
    #expect(rig.failures(.unreachable) == "0")
    #expect(rig.ids == ["a"])
  }
}
