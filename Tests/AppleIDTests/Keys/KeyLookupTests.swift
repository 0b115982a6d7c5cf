import AppleID
import EventLoop
import TestSupport
import Testing

/// What is said about a key that is not in the set, and how often Apple is asked for it.
@Loop @Suite struct KeyLookupTests {
  @Test func findsAKnownKeyWithoutAFetch() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a", "b")))
    #expect(await rig.lookUp("b").summary == "found in a b")
    #expect(rig.source.fetches == 1)
    await rig.stop()
  }

  @Test func findsAKeyThatAppleHasSinceThen() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(60))
    let lookup = await rig.ask("b")
    await rig.settle(.success(KeysRig.set("a", "b")))
    #expect(await lookup.value.summary == "found in a b")
    // The next refresh counts from here.
    #expect(rig.alarm.left == .seconds(3600))
    await rig.stop()
  }

  @Test func saysThatAppleHasNoSuchKey() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(60))
    let lookup = await rig.ask("x")
    await rig.settle(.success(KeysRig.set("a")))
    #expect(await lookup.value.summary == "absent")

    // The last fetch was made for this very key; for another one nobody can say before the pause is over.
    #expect(await rig.lookUp("x").summary == "absent")
    #expect(await rig.lookUp("y").summary == "unavailable")
    rig.pass(.seconds(45))
    #expect(await rig.lookUp("x").summary == "absent")
    #expect(await rig.lookUp("y").summary == "unavailable")
    #expect(rig.source.fetches == 2)

    // Then Apple is asked again, for both.
    rig.pass(.seconds(15))
    let again = await rig.ask("x")
    await rig.settle(.success(KeysRig.set("a", "x")))
    #expect(await again.value.summary == "found in a x")
    #expect(rig.source.fetches == 3)
    await rig.stop()
  }

  @Test func aKeyThatIsPassedOverIsNotAbsent() async {
    let rig = KeysRig()
    let text = String(decoding: KeysRig.set("a"), as: UTF8.self)
    let set = Array(text.replacing("[{", with: #"[{"kty":"EC","kid":"e"},{"#, maxReplacements: 1).utf8)
    await rig.start(.success(set))
    rig.pass(.seconds(60))
    let lookup = await rig.ask("e")
    await rig.settle(.success(set))
    #expect(await lookup.value.summary == "unavailable")
    #expect(await rig.lookUp("e").summary == "unavailable", "the last fetch was made for it")
    #expect(rig.source.fetches == 2)
    await rig.stop()
  }

  @Test func forgetsAfterTheNextFetchWhatTheOneBeforeDidNotHave() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(60))
    let first = await rig.ask("x")
    await rig.settle(.success(KeysRig.set("a")))
    #expect(await first.value.summary == "absent")
    rig.pass(.seconds(60))
    let second = await rig.ask("y")
    await rig.settle(.success(KeysRig.set("a")))
    #expect(await second.value.summary == "absent")
    #expect(await rig.lookUp("x").summary == "unavailable")
    await rig.stop()
  }

  @Test func asksNothingDuringThePauseAfterARefresh() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    #expect(await rig.lookUp("x").summary == "unavailable")
    rig.pass(.milliseconds(59_500))
    #expect(await rig.lookUp("x").summary == "unavailable")
    #expect(rig.source.fetches == 1)
    await rig.stop()
  }

  /// A service that ends does not wait for Apple.
  @Test func leavesWithACancelledTask() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(60))
    let (leaving, staying) = (await rig.ask("b"), await rig.ask("b"))
    leaving.cancel()
    #expect(await leaving.value.summary == "unavailable")
    await rig.settle(.success(KeysRig.set("a", "b")))
    #expect(await staying.value.summary == "found in a b")
    await rig.stop()
  }

  @Test func sharesOneFetchAmongAllWhoAsk() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(60))
    let lookups = [await rig.ask("b"), await rig.ask("x"), await rig.ask("b")]
    await rig.settle(.success(KeysRig.set("a", "b")))
    #expect(rig.source.fetches == 2)
    #expect(await lookups[0].value.summary == "found in a b")
    #expect(await lookups[1].value.summary == "unavailable")  // asked when the fetch had begun
    #expect(await lookups[2].value.summary == "found in a b")
    await rig.stop()
  }

  @Test func cannotSayWhatAFetchDidNotBringThatWasOnItsWayAlready() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    await rig.source.untilAsked()
    let absent = await rig.ask("x")
    let present = await rig.ask("b")
    await rig.settle(.success(KeysRig.set("a", "b")))
    #expect(await absent.value.summary == "unavailable")
    #expect(await present.value.summary == "found in a b")
    #expect(rig.source.fetches == 2)
    await rig.stop()
  }

  @Test func cannotSayAnythingWhileAppleIsUnreachable() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(60))
    let lookup = await rig.ask("x")
    await rig.settle(.failure(AppleKeysTests.unreachable))
    #expect(await lookup.value.summary == "unavailable")
    #expect(await rig.lookUp("x").summary == "unavailable")
    #expect(await rig.lookUp("a").summary == "found in a")
    await rig.stop()
  }

  @Test func waitsForTheFirstSet() async {
    let rig = KeysRig()
    let run = Task { await rig.keys.run() }
    await rig.source.untilAsked()
    let lookup = await rig.ask("a")
    await rig.settle(.success(KeysRig.set("a")))
    #expect(await lookup.value.summary == "found in a")
    run.cancel()
    await run.value
  }

  @Test func letsNobodyWaitWhereNobodyFetches() async {
    let rig = KeysRig()
    #expect(await rig.lookUp("a").summary == "unavailable")
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    await rig.source.untilAsked()
    let lookup = await rig.ask("x")
    await rig.stop()
    #expect(await lookup.value.summary == "unavailable")
    rig.pass(.seconds(3600))
    #expect(await rig.lookUp("x").summary == "unavailable")
  }

  @Test func boundsThoseWhoWait() async {
    let rig = KeysRig()
    await rig.start(.success(KeysRig.set("a")))
    rig.pass(.seconds(3600))
    await rig.source.untilAsked()
    var lookups: [Task<KeyLookup, Never>] = []
    for index in 0..<256 { lookups.append(await rig.ask("x\(index)")) }
    #expect(await rig.lookUp("y").summary == "unavailable")
    await rig.settle(.success(KeysRig.set("a")))
    for lookup in lookups { #expect(await lookup.value.summary == "unavailable") }
    await rig.stop()
  }
}
