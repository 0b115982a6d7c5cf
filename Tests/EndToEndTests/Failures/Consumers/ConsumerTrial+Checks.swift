import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import EventLoop
import Kafka
import TestSupport
import Testing
import TransparencyLog

extension ConsumerTrial {
  /// What the checker counted.
  struct Verdict {
    /// How many records on the topic of outcomes repeat one, byte for byte.
    var repeated = 0
    /// How often Apple was asked to revoke, and of how many people it had to be.
    var revocations = (asked: 0, needed: 0)
    /// How many obligations and effects the audit log has, and how many checkpoints readers saw of it.
    var audited = (obligations: 0, effects: 0, checkpoints: 0)
  }

  /// Looks at all that is left, and says what is not as the model has it.
  func check() async throws -> Verdict {
    let seed: Comment = "seed \(random.seed)"
    let contents = try await TopicContents.read(
      [.accountEvents, .outcomes, .emailRelay], stage.broker.bootstrapServers)
    let events = try (contents[Topic.accountEvents.name] ?? []).map { try AccountEvent(decoding: $0.value ?? []) }
    #expect(events.count == stream.events.count && Set(events.map(\.id)) == Set(stream.events.map(\.id)), seed)
    let own = Dictionary(grouping: events, by: \.subject.text)
    var models: [(person: Person, model: ObligationModel)] = []
    for person in stream.people {
      models.append((person, ObligationModel(own[person.subject] ?? [], hasToken: hasToken(person))))
    }

    var verdict = Verdict()
    verdict.repeated = checkOutcomes(contents[Topic.outcomes.name] ?? [], models.map(\.model), seed)
    try checkMail(contents[Topic.emailRelay.name] ?? [], models, seed)
    let customers = models.filter { !$0.model.isOver }.map(\.person.subject)
    #expect(try stage.shop.customers() == Set(customers), seed)
    #expect(try stage.shop.purchases() == 2 * customers.count, seed)
    #expect(service.erased == Set(stream.people.map(\.subject)).subtracting(customers) && service.wrong == 0, seed)
    for (person, model) in models where hasToken(person) {
      let tokens = try await stage.store.tokens(of: try ConsumerStage.account(person))
      #expect(tokens.isEmpty == model.isOver, seed)
      #expect(apple.isAuthorized(person, for: AppleSide.app) == !model.isRevoked, seed)
    }
    try await checkStore(events, models, seed)
    for (place, end) in try await progress.ends(of: TopicPlan.consumers.map { .deadLetters(of: $0) }) {
      #expect(end == 0, "\(place): \(seed)")
    }

    verdict.revocations = (apple.revocationsAsked, models.count { $0.model.isRevoked })
    // Whoever is cut short has four of them on their way at most.
    let revokers = members.filter { $0.consumer == .tokenRevoker }
    let cuts = revokers.reduce(0) { $0 + $1.kills + $1.moved.went }
    let bounds = verdict.revocations.needed...(verdict.revocations.needed + 4 * cuts)
    #expect(bounds.contains(verdict.revocations.asked), seed)
    for group in TopicPlan.consumers {
      let came = members.filter { $0.consumer == group }.reduce(0) { $0 + $1.moved.came }
      #expect(came >= 4, "partitions of \(group) moved in the middle less than twice, \(seed)")
    }
    return verdict
  }

  /// Returns how many of the records repeat one.
  private func checkOutcomes(_ records: [ConsumedRecord], _ models: [ObligationModel], _ seed: Comment) -> Int {
    var values: [String: [UInt8]?] = [:]
    for record in records {
      let id = record.text(of: "ce_id") ?? ""
      // An outcome says when it was done: what was done twice would differ.
      #expect(values[id, default: record.value] == record.value, "\(id) was done twice, \(seed)")
      values[id] = record.value
    }
    let expected = Set(models.flatMap(\.outcomes))
    let alternatives = models.flatMap(\.alternatives)
    let possible = expected.union(alternatives.joined())
    #expect(expected.subtracting(values.keys).sorted().prefix(5).isEmpty, "missing, \(seed)")
    let undecided = alternatives.filter { pair in pair.count { values.keys.contains($0) } != 1 }
    #expect(undecided.prefix(5).isEmpty, "both or none, \(seed)")
    #expect(Set(values.keys).subtracting(possible).sorted().prefix(5).isEmpty, "nobody's, \(seed)")
    return records.count - values.count
  }

  private func checkMail(
    _ records: [ConsumedRecord], _ models: [(person: Person, model: ObligationModel)], _ seed: Comment
  ) throws {
    var last: [String: [UInt8]?] = [:]
    for record in records { last[String(decoding: record.key ?? [], as: UTF8.self)] = record.value }
    for (person, model) in models {
      let found: ObligationModel.Mail
      if let value = last["\(AppleSide.team)/\(person.subject)"] ?? nil {
        let state = try RelayRecord(decoding: value).state
        found = .known(state.status, try #require(state.address), since: state.since)
      } else {
        found = .unknown
      }
      // A tombstone says that nothing is known, and not why.
      #expect(found == (model.mail == .erased ? .unknown : model.mail), "\(person.subject), \(seed)")
    }
  }

  private func checkStore(
    _ events: [AccountEvent], _ models: [(person: Person, model: ObligationModel)], _ seed: Comment
  ) async throws {
    for consumer in TopicPlan.consumers {
      let interesting = events.filter { event in
        switch event.kind {
        case .emailEnabled, .emailDisabled: consumer == .emailRelay
        default: true
        }
      }
      let references = interesting.map { event in
        EventReference(
          id: event.id, account: event.account, hash: stage.store.hash(of: event.account),
          occurredAt: event.occurredAt, origin: EventOrigin(topic: Topic.accountEvents.name, partition: 0, offset: 0),
          weight: EventWeight(severity: 0, tie: 0), yieldsTo: [])
      }
      var settled = 0
      for start in stride(from: 0, to: references.count, by: 500) {
        let part = Array(references[start..<min(start + 500, references.count)])
        settled += try await stage.store.standings(of: part, for: consumer).count {
          if case .settled = $0 { true } else { false }
        }
      }
      #expect(settled == references.count, "the ledger of \(consumer), \(seed)")
    }
    for (person, model) in models {
      let known = try await stage.store.relayStates(of: [try ConsumerStage.account(person)]).first
      let mail: ObligationModel.Mail =
        switch try #require(known) {
        case .unknown: .unknown
        case .erased: .erased
        case .known(let state): .known(state.status, try #require(state.address), since: state.since)
        }
      #expect(mail == model.mail, "\(person.subject), \(seed)")
    }
  }

  /// The groups have read nothing, as far as the broker knows: everything comes again, and nothing follows.
  func readEverythingAgain() async throws {
    let topics: [Topic] = [.outcomes, .emailRelay] + TopicPlan.consumers.map { .deadLetters(of: $0) }
    let (before, asked) = (try await progress.ends(of: topics), apple.revocationsAsked + apple.tokensAsked)
    for consumer in TopicPlan.consumers { try await progress.empty(consumer) }
    let readers = stride(from: 0, to: members.count, by: 2).map { members[$0] }
    for reader in readers { try await reader.start() }
    try await untilAllIsDone()
    for reader in readers { expectGoodEnd(try await reader.end(), of: reader) }
    let seed: Comment = "seed \(random.seed)"
    #expect(try await progress.ends(of: topics) == before, seed)
    #expect(apple.revocationsAsked + apple.tokensAsked == asked, seed)
  }

  /// The audit log has each event once, and each outcome, continues all that it ever showed, and says that all is done.
  func checkAuditLog() async throws -> (obligations: Int, effects: Int, checkpoints: Int) {
    let records = try await TopicContents.read([.outcomes], stage.broker.bootstrapServers)[Topic.outcomes.name] ?? []
    let outcomes = Set(try records.map { try AccountOutcome(decoding: $0.value ?? []) })
    try await auditLog?.untilPublished(stream.events.count + outcomes.count)
    #expect(try await auditLog?.end() == .exit(0), "the audit log, seed \(random.seed)")
    try await auditor.stop()
    try await auditor.expectContinued(by: stage.auditLog)
    let contents = try await AuditLogContents(of: stage.auditLog, stage.auditKey.key)
    contents.expect(Set(stream.events.map(\.id)), outcomes, "seed \(random.seed)")
    let complete = try await stage.siwa("audit", "completeness")
    #expect(
      complete.end == .exit(0) && complete.output.contains("Obligations  \(stream.events.count), ")
        && complete.output.contains("Open         0, 0 of them overdue\nGaps         0"),
      "\(complete.output.suffix(2000)), seed \(random.seed)")
    return (contents.obligations.count, contents.effects.count, auditor.seen.count)
  }

  /// Whoever is told to end ends with 0.
  func expectGoodEnd(_ end: RunningProgram.End?, of member: BreakableMember) {
    #expect(end == .exit(0), "\(member.consumer), seed \(random.seed)")
  }
}
