import AccountEvents
import AccountServices
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import HTTPClient
import JSON
import TestSupport
import Testing

/// Apple's keys over time: each stands on its topic before it answers for anything, and bad news of them change nothing.
@Loop @Suite struct SigningKeyTests {
  @Test func aKeyStandsOnItsTopicBeforeWhatItVerified() async throws {
    try await IngressRig.run { rig in
      for _ in 0..<6 { #expect(try await rig.answer() == 200) }
      #expect(rig.log.records.count == 6)
      #expect(rig.log.signingKeys.map(\.eventsBefore) == [0, 1], "two keys that sign in turn, each once")
      for (record, _) in rig.log.signingKeys {
        let key = try AppleSigningKey(decoding: record.value)
        let apples = try #require(rig.apple.ring.keys.first { $0.kid == key.id.text })
        #expect(key.modulus == Base64URL.encode(try apples.privateKey.modulus))
        #expect(key.firstSeen == IngressRig.now)
        #expect(record.key == Array(key.id.text.utf8))
      }
    }
  }

  @Test func whatStandsOnTheTopicsIsEnoughToVerifyAgain() async throws {
    try await IngressRig.run { rig in
      for _ in 0..<4 { #expect(try await rig.answer() == 200) }
      for _ in 0..<2 { try rig.apple.rotateKeys() }
      let keys = try rig.log.signingKeys.map { try AppleSigningKey(decoding: $0.record.value) }
      #expect(
        !keys.contains { key in rig.apple.ring.keys.contains { $0.kid == key.id.text } }, "Apple has none of them")
      for record in rig.log.records {
        let parts = try #require(record.text(of: "apple-jws")).split(separator: ".").map(String.init)
        let signature = try #require(Base64URL.decode(parts[2]))
        let verifying = try keys.filter { key in
          let modulus = try #require(Base64URL.decode(key.modulus))
          return try RSAPublicKey(modulus: modulus, exponent: [1, 0, 1])
            .verifiesRS256(signature, of: Array("\(parts[0]).\(parts[1])".utf8))
        }
        let header = String(decoding: try #require(Base64URL.decode(parts[0])), as: UTF8.self)
        #expect(verifying.count == 1 && header.contains("\"\(verifying[0].id)\""))
      }
    }
  }

  @Test func whatVerifiesNothingDoesNotGoThere() async throws {
    try await IngressRig.run { rig in
      for fault in [Fault.forgedSignature, .unknownKey, .wrongAudience] {
        let status = try await rig.answer(fault)
        #expect(status == 400)
      }
      #expect(rig.log.signingKeys.isEmpty)
      #expect(try await rig.answer(.unknownType) == 200)
      #expect(rig.log.signingKeys.count == 1, "what is kept aside is to be verified again too")
    }
  }

  /// The records of one key go one after the other: all who need it at once must not queue up behind each other.
  @Test(arguments: [nil, EventLogError.Outcome.uncertain])
  func whoNeedsAKeyAtTheSameTimeSharesItsRecord(outcome: EventLogError.Outcome?) async throws {
    try await IngressRig.run(spoolSize: 1) { rig in
      rig.log.hold()
      if let outcome { rig.log.fault = { $0.topic == .signingKeys ? .sample(outcome) : nil } }
      let answers = (0..<6).map { _ in
        Task(executorPreference: Loop.executor) { try await rig.answer() }
      }
      try await until { try await rig.metric("siwa_ingress_verification_seconds_count") == 6 }
      #expect(rig.log.waiting.map(\.topic) == [.signingKeys, .signingKeys], "one for each of Apple's two keys")
      rig.log.release()
      for answer in answers { #expect(try await answer.value == (outcome == nil ? 200 : 503)) }
      #expect(rig.log.signingKeys.count == (outcome == nil ? 2 : 0))
      #expect(rig.log.records.count == (outcome == nil ? 6 : 0))
    }
  }

  @Test func withoutItsKeyNothingIsAnswered() async throws {
    try await IngressRig.run(spoolSize: 1) { rig in
      rig.log.fault = { $0.topic == .signingKeys ? .sample(.unavailable) : nil }
      let notification = try rig.sign(.consentRevoked)
      #expect(try await rig.post(notification.body).status == 503)
      #expect(rig.log.records.isEmpty)
      rig.log.fault = { _ in nil }
      #expect(try await rig.post(notification.body).status == 200)
      #expect(rig.log.signingKeys.map(\.eventsBefore) == [0])
    }
  }

  @Test func aNewKeyOfApplesGoesThereToo() async throws {
    try await IngressRig.run { rig in
      for _ in 0..<2 { #expect(try await rig.answer() == 200) }
      let new = try rig.apple.rotateKeys()
      rig.source.answer = .success(try KeysSource.set(rig.apple.ring.keys))
      for _ in 0..<2 { #expect(try await rig.answer() == 200) }
      #expect(rig.log.signingKeys.count == 3)
      #expect(rig.log.signingKeys.last?.record.key == Array(new.utf8))
    }
  }

  /// What Apple's endpoint must not answer, and what comes of asking it.
  nonisolated static let bad: [(String, @Sendable ([SigningKey]) throws -> Result<[UInt8], AppleKeysFailure>)] = [
    ("a page", { _ in .success(Array("<html>Sign in to the Wi-Fi</html>".utf8)) }),
    ("garbage", { _ in .success([0xff, 0x00, 0x7b, 0x7d]) }),
    ("nothing", { _ in .success([]) }),
    ("a set without keys", { _ in .success(Array(#"{"keys":[]}"#.utf8)) }),
    ("one kid twice", { .success(try KeysSource.set($0 + $0)) }),
    ("half a set", { .success(try KeysSource.set($0).dropLast(20)) }),
    ("ten megabytes", { .success(try KeysSource.set($0) + Array(repeating: 0x20, count: 10_000_000)) }),
    (
      "one kid for another key",
      { .success(try KeysSource.set([SigningKey(kid: $0[0].kid, key: $0[1].privateKey), $0[1]])) }
    ),
    ("no answer in time", { _ in .failure(AppleKeysFailure(.deadline, "told to")) }),
    ("a redirect", { _ in .failure(AppleKeysFailure(.status, "status 302")) }),
  ]

  @Test(arguments: bad)
  func badNewsOfKeysChangeNothing(
    name: String, answer: @Sendable ([SigningKey]) throws -> Result<[UInt8], AppleKeysFailure>
  ) async throws {
    try await IngressRig.run { rig in
      for _ in 0..<2 { #expect(try await rig.answer() == 200) }
      let before = rig.source.fetches
      rig.source.answer = try answer(rig.apple.ring.keys)
      // A kid that nobody knows has Apple asked; whether Apple has it, nobody can say then.
      #expect(try await rig.answer(.unknownKey) == 503)
      #expect(rig.source.fetches == before + 1)
      for _ in 0..<2 { #expect(try await rig.answer() == 200) }
      #expect(try await rig.answer(.forgedSignature) == 400)
      #expect(try await rig.metric("siwa_apple_keys") == 2)
      #expect(rig.log.signingKeys.count == 2)
    }
  }

  /// Apple replaces a key while what it signed is still on its way.
  @Test func whatWasSignedBeforeAKeyWentIsPublishedAfterIt() async throws {
    try await IngressRig.run { rig in
      let (late, other) = (try rig.sign(.accountDelete), try rig.sign(.consentRevoked))
      #expect(try await rig.post(other.body).status == 200)
      let left = rig.apple.ring.keys.filter { !late.jws.hasPrefix($0.headerPrefix) }
      rig.source.answer = .success(try KeysSource.set(left))
      #expect(try await rig.answer(.unknownKey) == 400, "which has Apple asked")
      #expect(try await rig.metric("siwa_apple_keys") == 1)
      let fetches = rig.source.fetches
      #expect(try await rig.post(late.body).status == 200)
      #expect(rig.source.fetches == fetches && rig.log.records.map(\.topic) == [.accountEvents, .accountEvents])
      #expect(rig.log.signingKeys.count == 2, "it can be verified again, too")
      #expect(try await rig.post(rig.tampered(late.body)).status == 400)
    }
  }

  /// Apple was asked for it in vain: then it is somebody's to decide.
  @Test func whatAKeySignedAfterItWentIsKeptAside() async throws {
    try await IngressRig.run { rig in
      #expect(try await rig.answer() == 200)
      let (gone, kept) = (rig.apple.ring.keys[0], rig.apple.ring.keys[1])
      rig.source.answer = .success(try KeysSource.set([kept]))
      #expect(try await rig.answer(.unknownKey) == 400)
      let event: JSONValue = [
        "type": "consent-revoked", "sub": .string(IngressRig.person.subject),
        "event_time": .integer(IngressRig.now.milliseconds - 20_000),
      ]
      rig.clock.turn(by: .seconds(600))
      @Loop func body(_ jti: String, after seconds: Int64, validFor lifetime: Int64 = 86_400) throws -> [UInt8] {
        try rig.body(
          signedBy: gone, claims: rig.claims(jti: jti, events: event, issuedAfter: seconds, validFor: lifetime))
      }
      let fetches = rig.source.fetches
      #expect(try await rig.post(body("within", after: 60)).status == 200)
      #expect(rig.log.records.last?.topic == .accountEvents && rig.source.fetches == fetches)
      #expect(try await rig.post(body("later", after: 61)).status == 200)
      #expect(rig.source.fetches == fetches + 1, "Apple may have it again")
      #expect(rig.log.records.last?.topic == .quarantine)
      #expect(rig.log.records.last?.text(of: "quarantine-reason") == "retired-key")
      // Nor does a signature whose time is over pass for one that was merely late.
      #expect(try await rig.post(body("over", after: 61, validFor: 1)).status == 200)
      #expect(rig.log.records.last?.text(of: "quarantine-reason") == "retired-key")
      // Nobody can say whether Apple has it: Apple sends it again.
      rig.source.answer = .failure(AppleKeysFailure(.deadline, "told to"))
      #expect(try await rig.post(body("stillLater", after: 62)).status == 503)
    }
  }

  @Test func aKeyThatIsBackIsOneAsAnyOther() async throws {
    try await IngressRig.run { rig in
      #expect(try await rig.answer() == 200)
      let keys = rig.apple.ring.keys
      rig.source.answer = .success(try KeysSource.set([keys[1]]))
      #expect(try await rig.answer(.unknownKey) == 400)
      rig.clock.turn(by: .seconds(600))
      rig.source.answer = .success(try KeysSource.set(keys))
      let event: JSONValue = [
        "type": "consent-revoked", "sub": .string(IngressRig.person.subject),
        "event_time": .integer(IngressRig.now.milliseconds - 20_000),
      ]
      let body = try rig.body(signedBy: keys[0], claims: rig.claims(jti: "back", events: event, issuedAfter: 500))
      #expect(try await rig.post(body).status == 200)
      #expect(rig.log.records.last?.topic == .accountEvents)
      #expect(try await rig.metric("siwa_apple_keys_retired") == 0)
    }
  }

  /// A day after its end nothing that it signed before is valid any more.
  @Test func aKeyIsForgottenInTheEnd() async throws {
    try await IngressRig.run { rig in
      let late = try rig.sign(.accountDelete)
      #expect(try await rig.answer(.unknownKey) == 400)
      let left = rig.apple.ring.keys.filter { !late.jws.hasPrefix($0.headerPrefix) }
      rig.source.answer = .success(try KeysSource.set(left))
      #expect(try await rig.answer(.unknownKey) == 400)
      rig.clock.turn(by: .seconds(86_400 + 601))
      #expect(try await rig.post(late.body).status == 400)
    }
  }
}

extension IngressRig {
  /// The status with which a notification is answered.
  fileprivate func answer(_ fault: Fault? = nil) async throws -> Int {
    let faults = fault.map { [$0] } ?? []
    return try await post(apple.sign(.consentRevoked, of: Self.person, for: Self.app, faults: faults).body).status
  }
}

extension SigningKey {
  /// How a JWS begins whose header names this key, as Apple writes it.
  fileprivate var headerPrefix: String {
    let header = Base64URL.encode(Array(#"{"kid":"\#(kid)""#.utf8))
    return String(header.prefix(header.utf8.count / 4 * 4))
  }
}
