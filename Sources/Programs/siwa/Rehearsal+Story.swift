import AccountEvents
import AccountServices
import AccountStore
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
      try await services.join(within: Self.patience)
      while true {
        let (one, other) = Self.people(of: round)
        for (person, name) in [(one, "person \(round)"), (other, "another person \(round)")] {
          story.introduce(person, as: name)
          try await services.signIn(person, at: apple)
        }
        for type in types {
          let notification = try apple.sign(type, of: one, for: Self.audience)
          if round == 0, let id = EventID(notification.notification.jti) {
            events.insert(id)
            if type == .accountDeleted { deletion = id }
          }
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
        guard once else {
          try await Loop.sleep(for: interval)
          continue
        }
        // Whoever reads ends it.
        try await Loop.sleep(for: Self.patience)
        guard missing.isEmpty else {
          Terminal.complain("siwa: nobody has read of \(missing.sorted().joined(separator: ", "))")
          return .failure
        }
        try await Loop.sleep(for: .seconds(86_400))
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
    if number == 0 { events.insert(id) }
    let record = EventRecord(event, requestedBy: nil, because: nil, code: services.store.code)
    _ = try await producer.send(KafkaRecord(record))
  }

  /// Says of each record that arrives where it stands; with `once`, until there was everything.
  func tell(once: Bool) async -> ExitCode? {
    do {
      while true {
        let records = try await reader.next(upTo: 100)
        if records.isEmpty { return nil }
        for record in records {
          try shop.read(record)
          for (type, line) in try story.tell(record) {
            Terminal.say(line)
            missing.remove(type)
          }
        }
        if once, missing.isEmpty {
          let end = try await endIsReached()
          return end == .success ? try await prove() : end
        }
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
      for person in [people.one, people.other] { remains += try await services.remains(of: person) }
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

  /// Leaves proof of the first round, has others check it where they can, and says how somebody checks it again.
  private func prove() async throws -> ExitCode {
    guard let deletion else { preconditionFailure("all types were sent") }
    let folder = try proof ?? TemporaryFolder.make(named: "siwa-proof-")
    let people = Self.people(of: 0)
    let proof = try await services.prove(
      events, of: [people.one, people.other], withReceiptsOf: deletion, in: folder, within: Self.patience)
    Terminal.say("Every obligation is met, by the audit log of \(proof.size) entries. What proves it stays:")
    Terminal.say("  the receipt of the erasure  \(proof.erasure)")
    Terminal.say("  all of the log              \(proof.bundle)")
    var script: String?
    do {
      let verifier = try await OutsideVerifier()
      script = verifier.script
      Terminal.say(try await proof.check(with: verifier))
      Terminal.say("Check the receipt again:")
    } catch let absence as OutsideVerifier.Absence {
      Terminal.say("docs/verify.py has NOT checked it: \(absence).")
      Terminal.say("Check the receipt elsewhere:")
    }
    Terminal.say("  " + OutsideVerifier.line(script, "receipt", proof.erasure, by: proof.key))
    return .success
  }

  /// Whom a round is about.
  private static func people(of round: Int) -> (one: Person, other: Person) {
    (Person(named: "person \(round)"), Person(named: "another person \(round)"))
  }
}
