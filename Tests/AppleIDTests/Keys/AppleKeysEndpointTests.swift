import AccountEvents
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import HTTPServer
import Telemetry
import TestSupport
import Testing

/// The keys of a simulated Apple, over real TLS on loopback.
@Loop @Suite struct AppleKeysEndpointTests {
  /// Three keys for all tests: each takes a while to make.
  nonisolated static let ring = Result { try KeyRing(generating: 3) }

  /// Every answer of the simulator's, and what becomes of it; nil where the set is believed.
  nonisolated static let answers: [(KeysAnswer, AppleKeysFailure.Reason?)] = KeysAnswer.allCases.map { answer in
    let reason: AppleKeysFailure.Reason? =
      switch answer {
      case .keys, .otherType, .otherKey, .keyGone, .foreignKeys: nil
      case .unavailable, .redirect: .status
      case .tenMegabytes: .tooLarge
      case .silence, .drip: .deadline
      case .none, .html, .garbage, .kidTwice, .shortKey, .smallExponent, .malformedKey, .cutOff:
        .unfitSet
      }
    return (answer, reason)
  }

  @Test(arguments: answers)
  func judgesEveryAnswerOfApples(answer: KeysAnswer, reason: AppleKeysFailure.Reason?) async throws {
    Signals.block([])  // SIGPIPE must not end the tests
    let apple = SimulatedApple(
      ring: try Self.ring.get(), issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { Forge.now })
    apple.keysAnswer = answer
    let directory = TemporaryDirectory()
    let certificate = try SelfSignedCertificate(
      for: ["127.0.0.1"], validFrom: Int64(Date().timeIntervalSince1970) - 60, seconds: 3600)
    let file = directory.write("certificate.pem", certificate.certificatePEM)
    let server = try SimulatedAppleServer(
      apple, port: 0,
      tls: TLSServerConfiguration(
        certificateFile: file, privateKeyFile: directory.write("key.pem", certificate.privateKeyPEM)))
    let serving = Task { await server.run() }

    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-tests", trustAnchors: .systemAnd(file: file), proxy: .none, connectTimeout: .seconds(300),
        maximumConnections: 1, maximumRequests: 4))
    let log = CapturedLog()
    let registry = MetricsRegistry()
    let alarm = ManualAlarm()
    let keys = AppleKeys(
      from: AppleKeysEndpoint(
        try #require(HTTPClientURL(server.keysURL)), client: client,
        deadline: reason == .deadline ? .milliseconds(50) : .seconds(300)),
      cache: nil,
      pace: FetchPace(
        refresh: .seconds(3600), pause: .seconds(60), firstRetry: .seconds(1), longestRetry: .seconds(60)),
      alarm: alarm, now: { Forge.now }, jitter: { 0 }, metrics: AppleKeysMetrics(registry, now: { Forge.now }),
      logger: log.logger())
    let running = Task { await keys.run() }
    await alarm.untilSet()

    let count = reason != nil ? 0 : answer == .keyGone ? 2 : 3
    #expect(keys.current.keyIDs.count == count)
    #expect(Set(keys.current.keyIDs.map(\.text)).isSubset(of: apple.ring.keys.map(\.kid)))
    #expect(apple.keysAsked <= 1)  // a deadline may pass before the request is there
    // That the keys are new, and of two that are passed over and have a name.
    #expect(log.lines.count == (answer == .foreignKeys ? 3 : 1))
    if let reason {
      #expect(log.lines.first?.contains("\"keys.reason\":\"\(reason.rawValue)\"") == true)
    }
    running.cancel()
    await running.value
    serving.cancel()
    await serving.value
  }
}
