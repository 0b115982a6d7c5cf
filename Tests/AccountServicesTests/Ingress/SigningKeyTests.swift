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

  @Test func aKeyThatWasGoneIsBelievedAgainOnceItIsBack() async throws {
    try await IngressRig.run { rig in
      let (gone, left) = (try rig.sign(.consentRevoked), try rig.sign(.consentRevoked))
      for notification in [gone, left] { #expect(try await rig.post(notification.body).status == 200) }
      let keys = rig.apple.ring.keys
      rig.source.answer = .success(try KeysSource.set(keys.filter { !gone.jws.hasPrefix($0.headerPrefix) }))
      #expect(try await rig.answer(.unknownKey) == 400)
      #expect(try await rig.post(left.body).status == 200)
      #expect(try await rig.post(gone.body).status == 400, "Apple does not have it")
      rig.source.answer = .success(try KeysSource.set(keys))
      #expect(try await rig.post(gone.body).status == 200)
      #expect(rig.log.signingKeys.count == 2)
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
