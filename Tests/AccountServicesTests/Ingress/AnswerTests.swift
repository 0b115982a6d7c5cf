import AccountEvents
import AccountServices
import AppleID
import AppleSimulator
import EventLoop
import HTTPClient
import TestSupport
import Testing

/// The table of answers, row by row.
@Loop @Suite struct AnswerTests {
  @Test(arguments: NotificationType.allCases)
  func aNotificationIsAnsweredOnceItsEventIsOnTheLog(type: NotificationType) async throws {
    try await IngressRig.run { rig in
      rig.log.hold()
      let answer = Task(executorPreference: Loop.executor) { [body = try rig.sign(type).body] in
        try await rig.post(body).status
      }
      await rig.log.untilHeld()
      #expect(try await rig.metric("siwa_ingress_notifications_accepted_total") == 0)
      rig.log.release()
      #expect(try await answer.value == 200)
      #expect(rig.log.records.count == 1)
      #expect(try await rig.metric("siwa_ingress_notifications_accepted_total") == 1)
      let name = type == .accountDeleted ? "account-delete" : type.rawValue
      #expect(try await rig.metric("siwa_ingress_events_published_total{type=\"\(name)\"}") == 1)
      #expect(try await rig.metric("siwa_ingress_publication_seconds_count") == 1)
      #expect(try await rig.metric("siwa_ingress_verification_seconds_count") == 1)
    }
  }

  @Test func theSameNotificationAgainIsAnsweredAsTheFirstTime() async throws {
    try await IngressRig.run { rig in
      let notification = try rig.sign(.accountDeleted)
      for _ in 0..<2 {
        let response = try await rig.post(notification.body)
        #expect(response.status == 200 && response.body.isEmpty)
      }
      #expect(rig.log.records.count == 1)
      #expect(try await rig.metric("siwa_ingress_notifications_accepted_total") == 2)
      #expect(try await rig.metric("siwa_ingress_events_repeated_total") == 1)
    }
  }

  /// What the simulator, which shares no code with what judges it, says is right.
  @Test(arguments: Fault.allCases, [NotificationType.emailDisabled, .accountDeleted])
  func whatIsUnusualOrWrongGetsTheRightAnswer(fault: Fault, type: NotificationType) async throws {
    try await IngressRig.run { rig in
      let response = try await rig.post(rig.sign(type, fault).body)
      #expect(response.status == fault.rightAnswer.status)
      let topics = Set(rig.log.records.map(\.topic))
      switch fault.rightAnswer {
      case .accepted: #expect(topics == [.accountEvents])
      case .quarantined: #expect(topics == [.quarantine])
      case .refused: #expect(topics.isEmpty)
      }
    }
  }

  @Test(arguments: [
    (Fault.unknownType, "unknown-type"), (.eventsNumber, "unknown-form"), (.eventWithoutSubject, "unknown-form"),
    (.expired, "expired"), (.fromTheFuture, "not-yet-valid"),
  ])
  func whatAppleSignedAndNobodyUnderstandsIsKeptAside(fault: Fault, reason: String) async throws {
    try await IngressRig.run { rig in
      #expect(try await rig.post(rig.sign(.emailEnabled, fault).body).status == 200)
      let record = try #require(rig.log.records.first)
      #expect(record.topic == .quarantine)
      #expect(record.text(of: "quarantine-reason") == reason)
      #expect(try await rig.metric("siwa_ingress_events_quarantined_total{reason=\"\(reason)\"}") == 1)
      let alarm = rig.lines.lines.filter {
        $0.contains("\"level\":\"warning\"") && $0.contains("quarantined")
      }
      #expect(alarm.count == 1 && alarm[0].contains("\"reason\":\"\(reason)\""))
    }
  }

  @Test(arguments: [
    IngressRig.path + "/", "/", "/APPLE/notifications", "/apple%2Fnotifications", "//apple/notifications",
  ])
  func anotherPathIsNotFound(path: String) async throws {
    try await IngressRig.run { rig in
      let response = try await rig.post(rig.sign(.consentRevoked).body, to: path)
      #expect(response.status == 404)
      #expect(rig.log.records.isEmpty)
      #expect(try await rig.metric("siwa_ingress_requests_rejected_total{reason=\"no-such-path\"}") == 1)
    }
  }

  @Test func aQueryIsNoOtherPath() async throws {
    try await IngressRig.run { rig in
      let response = try await rig.post(rig.sign(.consentRevoked).body, to: "\(IngressRig.path)?a=b")
      #expect(response.status == 200)
    }
  }

  @Test func anotherMethodIsToldWhichOneIsRight() async throws {
    try await IngressRig.run { rig in
      let response = try await rig.get(IngressRig.path)
      #expect(response.status == 405 && response.header("Allow") == "POST")
      #expect(try await rig.metric("siwa_ingress_requests_rejected_total{reason=\"wrong-method\"}") == 1)
    }
  }

  /// One byte more than the verifier looks at, one more than the settings allow, and far more than the server takes.
  @Test(arguments: [16_384, 65_536, 10_000_000])
  func whatIsTooLargeIsToldSo(size: Int) async throws {
    try await IngressRig.run { rig in
      let response = try await rig.post(Array(repeating: 0x20, count: size + 1))
      #expect(response.status == 413)
      #expect(try await rig.metric("siwa_ingress_requests_rejected_total{reason=\"too-large\"}") == 1)
    }
  }

  @Test(arguments: [
    (EventLogError.Outcome.unavailable, "log-unavailable", "warning"), (.uncertain, "log-uncertain", "warning"),
    (.refused, "log-unavailable", "error"),
  ])
  func whatCannotBeKeptIsAskedForAgain(outcome: EventLogError.Outcome, cause: String, level: String) async throws {
    try await IngressRig.run(spoolSize: 1) { rig in
      rig.log.fault = { _ in .sample(outcome) }
      let notification = try rig.sign(.consentRevoked)
      let response = try await rig.post(notification.body)
      #expect(response.status == 503 && response.header("Retry-After") == "30")
      #expect(try await rig.metric("siwa_ingress_notifications_deferred_total{cause=\"\(cause)\"}") == 1)
      #expect(try await rig.metric("siwa_ingress_notifications_accepted_total") == 0)
      #expect(
        rig.lines.lines.count { $0.contains("\"level\":\"\(level)\"") && $0.contains("\"reason\":\"sample\"") } == 1)
      rig.log.fault = { _ in nil }
      #expect(try await rig.post(notification.body).status == 200)
    }
  }

  @Test func whatTheLogDoesNotTakeIsAcceptedWhereTheSpoolDoes() async throws {
    try await IngressRig.run { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      #expect(try await rig.post(rig.sign(.consentRevoked).body).status == 200)
      #expect(rig.log.records.isEmpty)
      #expect(try await rig.metric("siwa_spool_records") == 2, "with the key that it was signed with")
      rig.log.fault = { _ in nil }
      try await until { try await rig.metric("siwa_spool_records") == 0 }
      #expect(rig.log.records.count == 1)
    }
  }

  @Test func withoutKeysNothingIsDecided() async throws {
    try await IngressRig.run(keysFailure: AppleKeysFailure(.unreachable, "told to")) { rig in
      for notification in [try rig.sign(.consentRevoked), try rig.sign(.consentRevoked, .forgedSignature)] {
        let response = try await rig.post(notification.body)
        #expect(response.status == 503 && response.header("Retry-After") == "30")
      }
      #expect(try await rig.metric("siwa_ingress_notifications_deferred_total{cause=\"keys-unavailable\"}") == 2)
      #expect(rig.source.fetches == 1, "whoever failed is left alone for a while")
      #expect(rig.log.records.isEmpty)
    }
  }

  @Test func aKeyThatIsNewAtAppleIsFetchedOnce() async throws {
    try await IngressRig.run { rig in
      _ = try await rig.post(rig.sign(.consentRevoked).body)
      let before = rig.source.fetches
      try rig.apple.rotateKeys()
      rig.source.answer = .success(try KeysSource.set(rig.apple.ring.keys))
      // Both keys sign in turn: the new one among them.
      for _ in 0..<4 { #expect(try await rig.post(rig.sign(.consentRevoked).body).status == 200) }
      #expect(rig.source.fetches == before + 1)
    }
  }

  @Test func aKeyThatAppleDoesNotHaveCausesOneFetch() async throws {
    try await IngressRig.run { rig in
      _ = try await rig.post(rig.sign(.consentRevoked).body)
      let before = rig.source.fetches
      let response = try await rig.post(rig.sign(.consentRevoked, .unknownKey).body)
      #expect(response.status == 400)
      #expect(String(decoding: response.body, as: UTF8.self).contains("\"err\":\"invalid_key\""))
      #expect(rig.source.fetches == before + 1)
    }
  }

  @Test func oneAddressServesManyTeamsAndApps() async throws {
    try await IngressRig.run { rig in
      for audience in [IngressRig.app, IngressRig.web, IngressRig.otherApp] {
        let response = try await rig.post(rig.sign(.consentRevoked, for: audience).body)
        #expect(response.status == 200)
      }
      let subject = IngressRig.person.subject
      #expect(
        rig.log.records.map { $0.key.map { String(decoding: $0, as: UTF8.self) } }
          == ["A1B2C3D4E5/\(subject)", "A1B2C3D4E5/\(subject)", "Z9Y8X7W6V5/\(subject)"])
    }
  }
}
