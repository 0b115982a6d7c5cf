package import AccountEvents
package import AppleID
package import EventLoop
package import HTTPServer
package import Telemetry

/// From Apple's bytes to the answer that Apple gets: a straight line on which no step looks back.
@Loop
package final class NotificationEndpoint {
  private let path: [UInt8]
  private let largestBody: Int
  private let retryAfter: Int
  private let verifier: NotificationVerifier
  private let keys: AppleKeys
  private let publisher: EventPublisher
  private let metrics: IngressMetrics
  private let logger: Logger
  private let refusals: RefusalLog
  private let signingKeys = SigningKeyRecords()
  private let clock: ClockWatch
  private let now: @Sendable () -> Timestamp

  /// An endpoint at `path`.
  ///
  /// - Parameters:
  ///   - path: The only path that is answered, as it stands in the URL that Apple was given.
  ///   - largestBody: In bytes; Apple's notifications are under 1 KiB.
  ///   - retryAfter: Seconds that an answer "not now" asks Apple to wait.
  ///   - clock: Told when Apple signed what is verified.
  ///   - now: What the wall clock says.
  package init(
    path: String, largestBody: Int, retryAfter: Int, verifier: NotificationVerifier, keys: AppleKeys,
    publisher: EventPublisher, clock: ClockWatch, metrics: IngressMetrics, logger: Logger,
    now: @escaping @Sendable () -> Timestamp
  ) {
    self.path = Array(path.utf8)
    self.largestBody = largestBody
    self.retryAfter = retryAfter
    self.verifier = verifier
    self.keys = keys
    self.publisher = publisher
    self.clock = clock
    self.metrics = metrics
    self.logger = logger
    refusals = RefusalLog(logger)
    self.now = now
  }

  /// Answers one request.
  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    let answer = await answer(request)
    metrics.count(answer)
    return answer.response(retryAfter: retryAfter)
  }

  /// Every `return` is a row of the table of answers in `docs/ingress.md`.
  private func answer(_ request: HTTPRequest) async -> Answer {
    guard request.hasPath(path) else { return .noSuchPath }
    guard request.hasMethod("POST") else { return .wrongMethod }
    // Here and below: what is known already is taken without an async call, which costs even where it does not wait.
    let here = request.readBodyAtOnce(upTo: largestBody)
    let body = if let here { here } else { await request.readBody(upTo: largestBody) }
    switch body {
    case .complete: break
    case .refused(let refusal): return refusal.status == 413 ? .tooLarge : .brokenMessage(refusal)
    case .lost: return .lost
    }
    var verdict = verify(request)
    if case .unknownKey(let key) = verdict {
      let known = keys.answerAtOnce(on: key)
      let found = if let known { known } else { await keys.lookUp(key) }
      verdict = self.verdict(on: request, after: found, of: key)
    }
    switch verdict {
    case .refused(let refusal):
      refusals.note(refusal, from: request.peer, at: Loop.now) {
        request.withBody { body in verifier.audience(in: body) }
      }
      return .refused(refusal)
    case .verified(let notification): return await publish(notification)
    case .unknownKey: return .later(.keysUnavailable)
    }
  }

  /// The verifier's word after a look for the key that it did not have.
  private func verdict(on request: HTTPRequest, after lookup: KeyLookup, of key: KeyID) -> Verdict {
    switch lookup {
    case .found: return verify(request)
    case .absent:
      // Without the key the verifier's word would be the same.
      guard keys.current.knows(key) else { return .refused(.unknownKey) }
      let last = verify(request, wasLookedUp: true)
      if case .unknownKey = last { return .refused(.unknownKey) }
      return last
    case .unavailable: return .unknownKey(key)
    }
  }

  private func verify(_ request: HTTPRequest, wasLookedUp: Bool = false) -> Verdict {
    let start = MonotonicTime.now
    defer { metrics.verification.observe(.now - start) }
    return request.withBody { body in
      verifier.verify(body, at: now(), keys: keys.current, wasLookedUp: wasLookedUp)
    }
  }

  /// What Apple signed for us is an obligation: each of its events is on a topic or in the spool, or Apple is asked to
  /// send again. So is the key that it was signed with, before them.
  private func publish(_ notification: VerifiedNotification) async -> Answer {
    let start = MonotonicTime.now
    let arrival = now()
    var isNew = false
    do throws(EventLogError) {
      if !signingKeys.hasPublished(notification.signingKey) {
        try await signingKeys.ensure(notification.signingKey) { record throws(EventLogError) in
          _ = try await publisher.publish(record, as: nil)
          logger.info("signing key published", ["keys.id": .string(notification.signingKey.id.text)])
        }
      }
    } catch {
      noteFailed(notification.events[0], EventRecord(notification.signingKey), error)
      return .later(error.outcome == .uncertain ? .logUncertain : .logUnavailable)
    }
    for event in notification.events {
      let record = EventRecord(event, jws: notification.jws)
      do throws(EventLogError) {
        let (own, other) = marks(of: event, in: notification)
        let acceptance = try await publisher.publish(record, as: own, or: other)
        isNew = isNew || acceptance != .repeated
        note(acceptance, of: event, record)
      } catch {
        noteFailed(event, record, error)
        return .later(error.outcome == .uncertain ? .logUncertain : .logUnavailable)
      }
    }
    // Whatever was accepted before says nothing about the clock any more: anybody who has it may send it again.
    if isNew { clock.compare(withSignatureOf: notification.issuedAt, at: arrival) }
    metrics.publication.observe(.now - start)
    return .accepted
  }

  /// What an event is known by. One that is kept aside is not kept aside once it stands on its own topic; the other way
  /// round, what was kept aside under a wrong clock is published once the clock is right.
  private func marks(
    of event: VerifiedNotification.Event, in notification: VerifiedNotification
  ) -> (own: AcceptedEvents.Mark, other: AcceptedEvents.Mark?) {
    func mark(on topic: Topic) -> AcceptedEvents.Mark {
      AcceptedEvents.Mark(of: event.id, on: topic, team: notification.team, audience: notification.audience)
    }
    return switch event {
    case .known: (mark(on: .accountEvents), nil)
    case .quarantined: (mark(on: .quarantine), mark(on: .accountEvents))
    }
  }

  private func noteFailed(_ event: VerifiedNotification.Event, _ record: EventRecord, _ error: EventLogError) {
    let metadata: LogMetadata = [
      "event.id": .string(event.id.text), "kafka.topic": .string(record.topic.name),
      "reason": .string(error.reason), "detail": .string(error.detail),
    ]
    switch error.outcome {
    case .unavailable, .uncertain:
      logger.warning("event not accepted, Apple is asked to send it again", metadata)
    case .refused:
      logger.error("event refused by the log: lost unless somebody acts before Apple stops sending it", metadata)
    }
  }

  private func note(
    _ acceptance: EventPublisher.Acceptance, of event: VerifiedNotification.Event, _ record: EventRecord
  ) {
    // Metadata is made only where it is written.
    switch acceptance {
    case .published(let position):
      logger.debug(
        "event published",
        [
          "event.id": .string(event.id.text), "kafka.topic": .string(record.topic.name),
          "kafka.partition": .integer(position.partition), "kafka.offset": .integer(position.offset),
        ])
    case .spooled:
      logger.debug(
        "event spooled", ["event.id": .string(event.id.text), "kafka.topic": .string(record.topic.name)])
    case .repeated: return logger.debug("event accepted before", ["event.id": .string(event.id.text)])
    }
    switch event {
    case .known(let known): metrics.countPublished(known.kind)
    case .quarantined(let kept):
      publisher.metrics.quarantined[kept.reason].increment()
      logger.warning(
        "event quarantined: Apple signed it and it is not understood",
        ["event.id": .string(kept.id.text), "reason": .string(kept.reason.rawValue)])
    }
  }
}

extension EventRecord {
  fileprivate init(_ event: VerifiedNotification.Event, jws: [UInt8]) {
    switch event {
    case .known(let event): self.init(event, jws: jws)
    case .quarantined(let event): self.init(event, jws: jws)
    }
  }
}

extension VerifiedNotification.Event {
  /// What tells the event from all others.
  var id: EventID {
    switch self {
    case .known(let event): event.id
    case .quarantined(let event): event.id
    }
  }
}
