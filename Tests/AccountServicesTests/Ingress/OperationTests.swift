import AccountEvents
import AccountServices
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import HTTPClient
import HTTPServer
import Synchronization
import Telemetry
import TestSupport
import Testing

/// What operators and orchestrators see of the ingress, and how it ends.
@Loop @Suite struct OperationTests {
  @Test func saysWhichPartIsNotReady() async throws {
    try await IngressRig.run(keysFailure: AppleKeysFailure(.unreachable, "told to")) { rig in
      rig.log.unreadiness = .sample(.unavailable)
      try await until { try await rig.administration("/readyz").text.contains("told to") }
      let (status, text) = try await rig.administration("/readyz")
      #expect(status == 503)
      #expect(
        text == "keys: not ready: no keys yet\nkafka: replaced: the spool takes over: told to\nservice: ready\n")
      #expect(try await rig.administration("/livez").status == 200, "nothing that a restart would mend")
    }
  }

  @Test func isReadyWithoutTheLogWhileTheSpoolHasRoom() async throws {
    for (size, status) in [(1 << 30, 200), (1, 503)] {
      try await IngressRig.run(spoolSize: size) { rig in
        rig.log.unreadiness = .sample(.unavailable)
        rig.log.fault = { _ in .sample(.unavailable) }
        _ = try await rig.post(rig.sign(.consentRevoked).body)
        try await until { try await rig.administration("/readyz").text.contains("told to") }
        #expect(try await rig.administration("/readyz").status == status)
      }
    }
  }

  /// Copies are missing, a right is, or one of the brokers is out of reach: the cluster answers, and takes nothing.
  @Test func isNotReadyWhereNothingTakesRecordsThoughTheClusterAnswers() async throws {
    try await IngressRig.run(spoolSize: 1) { rig in
      try await until { try await rig.administration("/readyz").status == 200 }
      rig.log.fault = { _ in .sample(.unavailable) }
      // The state lasts only while records keep failing.
      try await until(every: .milliseconds(100)) {
        #expect(try await rig.post(rig.sign(.consentRevoked).body).status == 503)
        let (status, text) = try await rig.administration("/readyz")
        return status == 503 && text.contains("the log acknowledges nothing; ")
      }
      rig.log.fault = { _ in nil }
      #expect(try await rig.post(rig.sign(.consentRevoked).body).status == 200)
      try await until { try await rig.administration("/readyz").status == 200 }
    }
  }

  @Test func isReadySoonAfterItsPartsAre() async throws {
    try await IngressRig.run { rig in
      try await until { try await rig.administration("/readyz").status == 200 }
      #expect(try await rig.administration("/readyz").text == "keys: ready\nkafka: ready\nservice: ready\n")
      let words = rig.lines.lines.filter { $0.contains("\"message\":\"ready\"") }
      #expect(words.count == 2, "each part is told once: \(words)")
    }
  }

  @Test func followsItsCertificateAndSaysWhatBecomesOfIt() async throws {
    try await IngressRig.run { rig in
      let first = try #require(try await rig.metric("siwa_tls_certificate_not_after_seconds"))
      let start = Timestamp.now.milliseconds / 1000 - 60
      let second = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: start, seconds: 7200)
      // Between two steps, somebody insists: the pair is none.
      _ = rig.files.write("key.pem", second.privateKeyPEM)
      rig.service.renewCertificate()
      #expect(try await rig.metric("siwa_tls_reload_failures_total") == 1)
      #expect(try await rig.metric("siwa_tls_certificate_not_after_seconds") == first)
      let error = try #require(rig.lines.lines.first { $0.contains("the old one stays") })
      #expect(error.contains(#""level":"error""#) && error.contains("key values mismatch"), "\(error)")
      _ = rig.files.write("certificate.pem", second.certificatePEM)
      rig.service.renewCertificate()
      #expect(try await rig.metric("siwa_tls_reloads_total") == 1)
      #expect(try await rig.metric("siwa_tls_certificate_not_after_seconds") == Int(start) + 7200)
      #expect(rig.lines.lines.contains { $0.contains("certificate replaced") })
    }
  }

  /// As at the start. Served it is all the same.
  @Test func saysThatItsCertificateIsNotValidNow() async throws {
    try await IngressRig.run { rig in
      #expect(!rig.lines.lines.contains { $0.contains("the certificate ") })
      let now = IngressRig.now.milliseconds / 1000
      let moments = [
        (now - 7200, "the certificate has expired"), (now + 3600, "the certificate is not valid yet"), (now - 60, nil),
      ]
      for (start, line) in moments {
        let renewed = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: start, seconds: 3600)
        _ = rig.files.write("key.pem", renewed.privateKeyPEM)
        _ = rig.files.write("certificate.pem", renewed.certificatePEM)
        let before = rig.lines.lines.count
        rig.service.renewCertificate()
        let said = rig.lines.lines[before...].filter { $0.contains("the certificate ") }
        #expect(said.count == (line == nil ? 0 : 1), "\(said)")
        if let line { #expect(said.first?.contains(line) == true) }
      }
      #expect(try await rig.metric("siwa_tls_reloads_total") == 3)
    }
  }

  @Test func saysAtTheStartThatItsCertificateHasExpired() async throws {
    let (files, captured) = (TemporaryDirectory(), CapturedLog())
    let start = IngressRig.now.milliseconds / 1000 - 7200
    let expired = try SelfSignedCertificate(for: ["127.0.0.1"], validFrom: start, seconds: 3600)
    let server = try EndpointServer(
      .loopback(port: 0),
      tls: TLSServerConfiguration(
        certificateFile: files.write("certificate.pem", expired.certificatePEM),
        privateKeyFile: files.write("key.pem", expired.privateKeyPEM)),
      RelayEndpoint.bounds, registry: MetricsRegistry(), logger: captured.logger(), now: { IngressRig.now },
      handler: { _ in HTTPResponse(status: 404) })
    #expect(captured.lines.count { $0.contains("the certificate has expired") } == 1)
    await server.drain(within: .zero)
  }

  @Test func administrationIsNotWhereNotificationsArrive() async throws {
    try await IngressRig.run { rig in
      for path in ["/livez", "/readyz", "/metrics"] {
        let response = try await rig.get(path)
        #expect(response.status == 404)
      }
      #expect(try await rig.administration(IngressRig.path).status == 404)
    }
  }

  @Test func whatWasAcceptedIsAnsweredBeforeTheEnd() async throws {
    try await IngressRig.run { rig in
      rig.log.hold()
      let answer = Task(executorPreference: Loop.executor) { [body = try rig.sign(.consentRevoked).body] in
        try await rig.post(body).status
      }
      await rig.log.untilHeld()
      let end = Task(executorPreference: Loop.executor) { await rig.service.drain(within: .seconds(300)) }
      try await until {
        try await rig.administration("/readyz") == (503, "keys: ready\nkafka: ready\nservice: not ready: draining\n")
      }
      await #expect(throws: HTTPClientError.self) { try await rig.post([], to: "/") }
      #expect(!rig.log.isClosed)
      rig.log.release()
      #expect(try await answer.value == 200)
      await end.value
      #expect(rig.log.isClosed)
    }
  }

  /// Whoever asks `/readyz` learns of the end before anybody is refused. That another signal ends it at once is the
  /// program's own doing.
  @Test func saysThatItEndsBeforeItStopsListening() async throws {
    try await IngressRig.run(lameDuck: .seconds(3600)) { rig in
      try await until { try await rig.administration("/readyz").status == 200 }
      let draining = Task { await rig.service.drain(within: .seconds(300)) }
      try await until { try await rig.administration("/readyz").status == 503 }
      #expect(try await rig.administration("/readyz").text.contains("service: not ready: draining"))
      for _ in 0..<3 { #expect(try await rig.post(rig.sign(.consentRevoked).body).status == 200) }
      #expect(rig.lines.lines.contains { $0.contains("about to drain") })
      #expect(!rig.lines.lines.contains { $0.contains("ingress drains") })
      draining.cancel()  // instead of waiting for an hour
      await draining.value
      // A program that another test starts just now holds the socket, too, until it is another program.
      while let client = try? RawClient(rig.service.address) {
        client.close()
        await turn()
      }
    }
  }

  @Test func patienceWithTheEndIsLimited() async throws {
    try await IngressRig.run { rig in
      rig.log.hold()
      let answer = Task(executorPreference: Loop.executor) { [body = try rig.sign(.consentRevoked).body] in
        try await rig.post(body).status
      }
      await rig.log.untilHeld()
      await rig.service.drain(within: .zero)
      await #expect(throws: HTTPClientError.self) { try await answer.value }
    }
  }

  /// Somebody who only connects, as a port scanner or a load balancer's probe does, is nobody to wait for.
  @Test func aSilentPeerDoesNotHoldUpTheEnd() async throws {
    try await IngressRig.run { rig in
      let silent = try RawClient(rig.service.address)
      try await until { try await rig.metric("siwa_http_connections") == 1 }
      await rig.service.drain(within: .seconds(3600))
      #expect(try await silent.readToEnd() == "")
    }
  }
}

/// A clock of ours that goes wrong is seen before it diverts anything.
@Loop @Suite struct ClockTests {
  @Test(arguments: [-31, 31])
  func saysWhenOurClockAndApplesLieApart(seconds: Int) async throws {
    try await IngressRig.run { rig in
      rig.source.date = IngressRig.now
      // A kid that nobody knows has Apple asked.
      @Loop func look() async throws { _ = try await rig.post(rig.sign(.consentRevoked, .unknownKey).body) }
      try await look()
      #expect(try await rig.metric("siwa_apple_clock_difference_seconds") == 0)
      rig.clock.turn(by: .seconds(seconds))
      for _ in 0..<2 { try await look() }
      #expect(try await rig.metric("siwa_apple_clock_difference_seconds") == seconds)
      #expect(rig.lines.lines.count { $0.contains("our clock and Apple's lie apart") } == 1)
      #expect(rig.log.records.isEmpty)
      rig.clock.turn(by: .seconds(-seconds))
      try await look()
      #expect(rig.lines.lines.count { $0.contains("our clock and Apple's agree again") } == 1)
    }
  }

  @Test func aSignatureThatIsAheadShowsThatOurClockIsBehind() async throws {
    try await IngressRig.run { rig in
      let sent = try rig.sign(.consentRevoked)
      let ahead = Int((sent.notification.issuedAt - IngressRig.now) / .seconds(1)) - 40
      rig.clock.turn(by: .seconds(ahead))
      #expect(try await rig.post(sent.body).status == 200)
      #expect(rig.log.records.map(\.topic) == [.accountEvents], "it is within the tolerance")
      let age = try #require(try await rig.metric("siwa_ingress_notification_age_seconds"))
      #expect(-41 ... -39 ~= age)
      #expect(rig.lines.lines.count { $0.contains("our clock and Apple's lie apart") } == 1)
    }
  }

  private final class Time: Sendable {
    let now = Mutex(MonotonicTime.now)
  }

  @Test func anOldSignatureDoesNotSayThatTheClocksAgree() throws {
    let (lines, registry, time, wall) = (CapturedLog(), MetricsRegistry(), Time(), IngressRig.now)
    let watch = ClockWatch(
      tolerance: .seconds(60), of: .notifications, registry: registry, logger: lines.logger()
    ) {
      time.now.withLock { $0 }
    }
    func count(_ words: String) -> Int { lines.lines.count { $0.contains(words) } }
    func hasAge(_ age: Int) -> Bool {
      String(decoding: registry.render(), as: UTF8.self).contains("\nsiwa_ingress_notification_age_seconds \(age)\n")
    }
    watch.compare(withSignatureOf: wall + .seconds(40), at: wall)
    for age in [7200, 1] { watch.compare(withSignatureOf: wall + .seconds(-age), at: wall) }
    #expect(count("lie apart") == 1 && count("agree again") == 0 && hasAge(-40))
    watch.compare(withAnswerOf: wall + .seconds(2), at: wall)
    #expect(count("agree again") == 1)
    watch.compare(withSignatureOf: wall + .seconds(-7), at: wall)
    #expect(hasAge(7))

    watch.compare(withSignatureOf: wall + .seconds(50), at: wall)
    time.now.withLock { $0 = $0 + .seconds(599) }
    watch.compare(withSignatureOf: wall, at: wall)
    #expect(count("lie apart") == 2 && count("agree again") == 1 && hasAge(-50))
    time.now.withLock { $0 = $0 + .seconds(1) }
    watch.compare(withSignatureOf: wall, at: wall)
    #expect(count("agree again") == 2 && hasAge(0))
  }

  /// Where people sign in, only Apple's answers are a clock.
  @Test func saysThatNobodyCanSignInByAClockThatLiesApart() throws {
    let (lines, registry, wall) = (CapturedLog(), MetricsRegistry(), IngressRig.now)
    let watch = ClockWatch(
      tolerance: .seconds(60), of: .identityTokens, registry: registry, logger: lines.logger(), loopTime: { .now })
    watch.compare(withAnswerOf: wall + .seconds(-31), at: wall)
    let metrics = String(decoding: registry.render(), as: UTF8.self)
    #expect(metrics.contains("\nsiwa_apple_clock_difference_seconds 31\n"))
    #expect(!metrics.contains("siwa_ingress"))
    #expect(lines.lines.count { $0.contains("lie apart") && $0.contains("nobody can sign in") } == 1)
  }

  @Test func aClockIsAheadOnceAppleSaysSoAndUntilItIsSetBack() {
    let (time, wall) = (Time(), IngressRig.now)
    let watch = ClockWatch(
      tolerance: .seconds(60), of: .identityTokens, registry: MetricsRegistry(), logger: CapturedLog().logger()
    ) {
      time.now.withLock { $0 }
    }
    #expect(!watch.isAhead(at: wall), "nobody knows")
    watch.compare(withAnswerOf: wall - .seconds(60), at: wall)
    #expect(!watch.isAhead(at: wall), "it is within the tolerance")
    #expect(!watch.isAhead(at: wall + .seconds(7200)), "the machine may have slept")
    watch.compare(withAnswerOf: wall - .seconds(61), at: wall)
    time.now.withLock { $0 = $0 + .seconds(1000) }
    #expect(watch.isAhead(at: wall + .seconds(1000)) && watch.isAhead(at: wall + .seconds(8200)))
    #expect(!watch.isAhead(at: wall + .seconds(999)), "it was set back by a second")
  }

  @Test func aNotificationThatWasLongOnItsWayIsNoClock() async throws {
    try await IngressRig.run { rig in
      let sent = try rig.sign(.consentRevoked)
      rig.clock.turn(by: .seconds(7200))
      #expect(try await rig.post(sent.body).status == 200)
      #expect(rig.lines.lines.allSatisfy { !$0.contains("lie apart") })
    }
  }
}

@Loop @Suite struct RefusalLogTests {
  /// A flood is told once for each reason and ten seconds, with how much of it was not.
  @Test func aFloodOfRefusalsIsNoFloodOfLines() {
    let lines = CapturedLog()
    let refusals = RefusalLog(lines.logger())
    let (start, peer) = (MonotonicTime.now, SocketAddress.loopback(port: 4711))
    for second in 0..<25 {
      for _ in 0..<1000 {
        refusals.note(.wrongSignature, from: peer, at: start + .seconds(second)) { ClientID("com.example.other") }
      }
    }
    for name in ["com.example.other", "with a space"] {
      refusals.note(.unknownAudience, from: peer, at: start) { ClientID(name) }
      refusals.note(.severalTeams, from: peer, at: start) { ClientID(name) }
    }
    #expect(
      lines.lines.map { $0.split(separator: "\"message\":")[1] } == [
        "\"notification refused\",\"reason\":\"wrong-signature\",\"http.peer\":\"127.0.0.1\",\"notLogged\":0}\n",
        "\"notification refused\",\"reason\":\"wrong-signature\",\"http.peer\":\"127.0.0.1\",\"notLogged\":9999}\n",
        "\"notification refused\",\"reason\":\"wrong-signature\",\"http.peer\":\"127.0.0.1\",\"notLogged\":9999}\n",
        "\"notification refused\",\"reason\":\"unknown-audience\",\"http.peer\":\"127.0.0.1\",\"notLogged\":0,\"audience\":\"com.example.other\"}\n",
        "\"notification refused\",\"reason\":\"several-teams\",\"http.peer\":\"127.0.0.1\",\"notLogged\":0}\n",
      ])
  }
}
