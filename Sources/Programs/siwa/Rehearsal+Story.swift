import AccountEvents
import AppleSimulator
import Configuration
import EventLoop
import Kafka

extension Rehearsal {
  /// People sign in; Apple sends one notification of each type about the one, and the other asks the app for the deletion
  /// of the account; then again. Nil when the task is cancelled, a failure where a delivery that must succeed does not.
  func send(every interval: Duration, once: Bool) async -> ExitCode? {
    let types: [NotificationType] = [.emailDisabled, .emailEnabled, .consentRevoked, .accountDeleted]
    var round = 0
    do {
      while true {
        let (one, other) = Self.people(of: round)
        for person in [one, other] { try await consumers.signIn(person, at: apple) }
        for type in types {
          let notification = try apple.sign(type, of: one, for: Self.audience)
          let delivery = await apple.deliver([notification], plan)
          if Task.isCancelled { return nil }
          guard delivery.allSatisfy({ $0.received == 1 }) else {
            let attempts = delivery.flatMap(\.attempts).map(\.description).joined(separator: ", ")
            Terminal.complain("siwa: the ingress did not take \(type.rawValue): \(attempts)")
            return .failure
          }
          if !once { try await Loop.sleep(for: interval) }
        }
        try await askForDeletion(of: other, number: round)
        round += 1
        if once { try await Loop.sleep(for: Self.patience) } else { try await Loop.sleep(for: interval) }
      }
    } catch is CancellationError {
      return nil
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }

  /// What an accounts service says when somebody asks the app for the deletion of the account.
  private func askForDeletion(of person: Person, number: Int) async throws {
    let now = Timestamp.now
    guard let id = EventID("asked-\(now.milliseconds)-\(number)"), let team = TeamID(Self.team),
      let audience = ClientID(Self.audience), let subject = AppleSubject(person.subject)
    else { preconditionFailure("our own constants") }
    let event = AccountEvent(
      id: id, team: team, audience: audience, subject: subject, kind: .accountDeletionRequested, occurredAt: now,
      issuedAt: now)
    let record = EventRecord(event, jws: nil)
    _ = try await producer.send(
      KafkaRecord(
        topic: record.topic.name, key: record.key, value: record.value,
        headers: record.headers.map { KafkaHeader($0.name, $0.value) }))
  }

  /// Says of each record that arrives where it stands; with `once`, until there was everything.
  func tell(once: Bool) async -> ExitCode? {
    do {
      while true {
        let records = try await reader.next(upTo: 100)
        if records.isEmpty { return nil }
        for record in records {
          Terminal.say(record.line)
          missing.remove(record.eventType)
          if record.topic == Topic.outcomes.name { try tell(outcome: record) }
        }
        if once, missing.isEmpty { return try await endIsReached() }
      }
    } catch is CancellationError {
      return nil
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }

  /// Waits until nothing is left of either person of the first round, which takes the last consumer a moment.
  private func endIsReached() async throws -> ExitCode {
    let people = Self.people(of: 0)
    let end = MonotonicTime.now + Self.patience
    while true {
      var remains: [String] = []
      for person in [people.one, people.other] { remains += try await consumers.remains(of: person) }
      if remains.isEmpty {
        Terminal.say("One event of every type has arrived, and what follows from it is done: of two people")
        Terminal.say("no customer is left in the shop, no token, and no mail state.")
        return .success
      }
      guard MonotonicTime.now < end else {
        Terminal.complain("siwa: there is still \(remains.joined(separator: ", "))")
        return .failure
      }
      try await Loop.sleep(for: .milliseconds(20))
    }
  }

  /// Whom a round is about.
  private static func people(of round: Int) -> (one: Person, other: Person) {
    (Person(named: "person \(round)"), Person(named: "another person \(round)"))
  }

  /// Says what an erasure came to.
  private func tell(outcome record: ConsumedRecord) throws {
    guard let value = record.value else { return }
    let outcome = try AccountOutcome(decoding: value)
    guard outcome.name == .accountErased else { return }
    for target in outcome.targets {
      let counts = [("before", target.before), ("erased", target.affected), ("found after", target.after)]
        .compactMap { name, count in count.map { "\(name): \($0)" } }
      Terminal.say("                           \(target.name): \(target.state), \(counts.joined(separator: ", "))")
    }
  }
}

extension ConsumedRecord {
  private func header(_ name: String) -> String {
    headers.first { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  /// `consent-revoked`, from `com.apple.siwa.consent-revoked.v1`.
  fileprivate var eventType: String {
    value == nil ? "tombstone" : header("ce_type").split(separator: ".").dropLast().last.map(String.init) ?? "unknown"
  }

  fileprivate var line: String {
    let type = eventType + String(repeating: " ", count: max(0, 26 - eventType.count))
    let id = header("ce_id")
    return
      "\(type) \(topic)  partition \(position.partition)  offset \(position.offset)\(id.isEmpty ? "" : "  event \(id)")"
  }
}
