import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import JSON
import Kafka

/// `siwa erase --verify`: searches every place that the programs write to for a person. Changes nothing.
struct EraseVerification {
  /// The kinds of places.
  private enum Place: String, CaseIterable {
    case store = "account-store"
    case topics
    case spool
    case duplicates
    case auditLog = "audit-log"
  }

  /// How long the cluster may take for an answer, or be silent while a topic is read.
  private static let patience = Duration.seconds(30)

  private let places: [Place]
  private let isStrict: Bool
  private let isJSON: Bool
  private let consumers: [ConsumerName]

  /// Nil unless it is asked for.
  init?(reading arguments: inout CommandArguments) {
    let isAsked = arguments.flag("--verify", "Searches for what is left of the person; erases nothing.")
    let named = arguments.readAll(
      "--place", "PLACE", .choice(Place.self), "With --verify: searches these places alone; may be repeated.")
    isStrict = arguments.flag("--strict", "With --verify: what goes by itself counts as left, too.")
    isJSON = arguments.flag("--json", "With --verify: says each place as a line of JSON.")
    consumers =
      TopicPlan.consumers
      + arguments.readAll(
        "--consumer", "NAME", .consumerName,
        "With --verify: a consumer of your own, whose topics are searched; may be repeated.")
    places = named.isEmpty ? Place.allCases : named
    if !isAsked { return nil }
  }

  @Loop
  func run(_ account: Account, _ options: ConfigurationOptions) async -> ExitCode {
    do {
      let traces = try await search(account, options)
      let isStaying = traces.contains { if case .staying = $0.stay { true } else { false } }
      let isPassing = traces.contains { if case .passing = $0.stay { true } else { false } }
      if isStaying || isStrict && isPassing { return .failure }
      return traces.contains { if case .unknown = $0.stay { true } else { false } } ? .unreachable : .success
    } catch {
      return ExitCode(complainingOf: error)
    }
  }

  @Loop
  private func search(_ account: Account, _ options: ConfigurationOptions) async throws -> [PersonTrace] {
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    let marks = PersonMarks(of: account)
    var traces: [PersonTrace] = []
    var events: Set<EventID> = []
    func note(_ trace: PersonTrace) {
      traces.append(trace)
      Terminal.say(isJSON ? trace.json : trace.line)
    }
    if places.contains(.store) {
      let settings = try ConfigurationSchema.siwa.load(StoreSettings.self, from: sources).value
      let holdings = try await settings.administration().holdings(of: account)
      events.formUnion(holdings.events)
      for trace in PersonTrace.all(of: holdings) { note(trace) }
    }
    if places.contains(.topics) {
      let store = try await ConfigurationSchema.siwa.load(StoreSettings.self, from: sources).value.open()
      let hashes = store.hashes(of: account)
      await store.close()
      let search = TopicTraces(
        for: marks, hashes, try options.kafka(), within: Self.patience, log: ConfigurationOptions.kafkaLog)
      for topic in TopicPlan.all(consumers: consumers).map(\.topic) {
        let bar = ProgressBar("records of \(topic)")
        let result = try await search.search(topic) { bar.note(done: $0, of: $1) }
        bar.clear()
        events.formUnion(result.events)
        note(result.trace)
      }
    }
    if places.contains(.spool) || places.contains(.duplicates) {
      let directory = try ConfigurationSchema.siwa.load(SpoolSettings.self, from: sources).value.directory
      let remembered = try ConfigurationSchema.siwa.load(DuplicatesSettings.self, from: sources).value.time
      let audiences = try ConfigurationSchema.siwa.load(TeamsSettings.self, from: sources).value.teams
        .filter { $0.value == account.team }.map(\.key)
      for trace in await local(directory, marks, events, audiences, remembered) { note(trace) }
    }
    if places.contains(.auditLog) {
      let settings = try ConfigurationSchema.siwa.load(AuditLogDirectorySettings.self, from: sources).value
      note(await auditLog(settings.directory, marks))
    }
    return traces
  }

  /// What the audit log of this machine has on its disk.
  @Loop
  private func auditLog(_ directory: String, _ marks: PersonMarks) async -> PersonTrace {
    let thread = BlockingThread(named: "audit-search")
    defer { thread.close() }
    let bar = ProgressBar("entries of the audit log")
    defer { bar.clear() }
    var (search, isDone) = (AuditLogTraces(directory, for: marks), false)
    do {
      while !isDone {
        (search, isDone) = try await thread.run { [search] in
          var search = search
          let isDone = try !search.step()
          return (search, isDone)
        }
        bar.note(done: search.entryCount, of: search.size)
      }
    } catch {
      return PersonTrace("audit-log \(directory)", "", .unknown("\(error)"))
    }
    return search.trace
  }

  /// What an ingress of this machine has on its disk.
  private func local(
    _ directory: String, _ marks: PersonMarks, _ events: Set<EventID>, _ audiences: [ClientID], _ remembered: Duration
  ) async -> [PersonTrace] {
    let thread = BlockingThread(named: "spool-search")
    defer { thread.close() }
    return await thread.run { [places] in
      var traces: [PersonTrace] = []
      if places.contains(.spool) {
        do throws(SpoolError) { traces.append(try SpoolTraces.search(directory, for: marks)) } catch {
          traces.append(PersonTrace("spool \(directory)", "", .unknown("\(error)")))
        }
      }
      guard places.contains(.duplicates) else { return traces }
      do throws(SystemError) {
        traces.append(
          try AcceptedTraces.search(directory, for: events, marks.account.team, audiences, remembered: remembered))
      } catch {
        traces.append(PersonTrace("duplicates \(directory)", "", .unknown("\(error)")))
      }
      return traces
    }
  }
}

extension PersonTrace {
  /// What is to be said of what a store holds.
  fileprivate static func all(of holdings: AccountHoldings) -> [PersonTrace] {
    let place = "account-store"
    var traces: [PersonTrace] = []
    if holdings.isKept {
      let mail = holdings.hasMailState ? ", the state of mail" : ""
      let words = "the account, sealed: its name, \(holdings.tokens) tokens\(mail)"
      traces.append(
        PersonTrace(
          place, words,
          .staying(
            holdings.erasedAt == nil ? "until the account is erased" : "it is of the time after the last erasure")))
    }
    let open = holdings.left.filter { $0.state != .retained }
    if !open.isEmpty {
      let words = open.map { "\($0.place.event) at \($0.place.target)" }.joined(separator: ", ")
      traces.append(PersonTrace(place, "erasures that are open: \(words)", .staying("see 'siwa erasures list'")))
    }
    for step in holdings.left where step.state == .retained {
      traces.append(PersonTrace(place, "a note that \(step.place.target) has retained something", .impersonal))
    }
    if holdings.waiting > 0 {
      let words = "\(holdings.waiting) events of our own, sealed, that wait to be published"
      traces.append(PersonTrace(place, words, .passing(until: nil)))
    }
    if holdings.transfers > 0 {
      let words = "a user of \(holdings.transfers) transfers between teams, sealed"
      traces.append(
        PersonTrace(place, words, .staying("until the account is erased, or 'siwa migrate remove' removes the plan")))
    }
    if holdings.traces > 0 {
      traces.append(PersonTrace(place, "\(holdings.traces) rows by the keyed hash", .impersonal))
    }
    return traces.isEmpty ? [.nothing(place)] : traces
  }

  private var words: String {
    switch stay {
    case .nothing: "-"
    case .impersonal: "names nobody"
    case .passing(let until): until.map { "goes by itself, until \($0) at the latest" } ?? "goes by itself"
    case .staying(let words): "STAYS \(words)"
    case .unknown(let words): "UNKNOWN \(words)"
    }
  }

  fileprivate var line: String { [place, found, words].joined(separator: "  ") }

  fileprivate var json: String {
    var state: String
    var until: JSONValue = .null
    switch stay {
    case .nothing: state = "nothing"
    case .impersonal: state = "impersonal"
    case .passing(let time):
      state = "passing"
      until = time.map { .string($0.description) } ?? .null
    case .staying: state = "staying"
    case .unknown: state = "unknown"
    }
    let value: JSONValue = [
      "place": .string(place), "found": .string(found), "stay": .string(state), "until": until,
      "words": .string(words),
    ]
    return String(decoding: value.bytes, as: UTF8.self)
  }
}
