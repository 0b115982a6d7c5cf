import AccountEvents
import AccountStore
import AppleID
import Cryptography
import EventLoop
import HTTPClient
import JSON
import Telemetry

/// Deletions that people ask for in an app: written down with the event that announces them, and answered for until long
/// after the person is erased.
@Loop
final class Deletions {
  private let store: any AccountStore
  private let sight: AccountSight
  private let announce: @Loop () -> Void
  private let logger: Logger
  private let now: @Sendable () -> Timestamp
  private let isAhead: @Loop (Timestamp) -> Bool

  /// Deletions in this store. `isAhead` says whether our clock is known to be ahead of Apple's too far at that moment of its
  /// own; `announce` is called where an event was put into its outbox.
  init(
    _ store: any AccountStore, _ sight: AccountSight, logger: Logger, now: @escaping @Sendable () -> Timestamp,
    isAhead: @escaping @Loop (Timestamp) -> Bool, announce: @escaping @Loop () -> Void
  ) {
    (self.store, self.sight, self.logger) = (store, sight, logger)
    (self.now, self.isAhead, self.announce) = (now, isAhead, announce)
  }

  /// A person asks for the deletion of an account, or asks again. The same request of a caller, by its key, is the deletion
  /// that it began, even where the person has signed in since.
  ///
  /// What Apple tells of an account until the time of its deletion is void once the person has signed in again. So none is
  /// taken by a clock that is known to be ahead of Apple's.
  func request(
    _ account: AccountID, named key: String? = nil, by caller: AccountsSettings.Caller
  ) async throws(Problem) -> DeletionProgress {
    let clients = caller.clients
    var id = try Self.newID()
    if let key {
      id = Self.id(of: account, named: key, by: caller.name)
      if let progress = try await progress(of: id), sight.sees(progress.deletion.team, for: clients) { return progress }
    }
    let (asked, time) = (id, now())
    let unknown = Problem(.notFound, "There is no such account of the caller's apps.")
    var found: Deletion?
    let knowledge = try await ask { store throws(AccountStoreError) in try await store.knowledge(of: account) }
    if case .known(let profile) = knowledge {
      guard let client = sight.client(asking: profile, of: clients) else { throw unknown }
      guard !isAhead(time) else {
        logger.error("a deletion was not taken: our clock is ahead of Apple's", ["account": .describing(account)])
        throw .unavailable("The clock of the service is ahead of Apple's. Repeat the same request.", retryAfter: 60)
      }
      found = try await ask { store throws(AccountStoreError) in
        try await store.requestDeletion(of: profile.account, in: client, as: asked, at: time)
      }
    }
    if found == nil {
      // It is erased, and whoever asks may not know that it was done.
      found = try await ask { store throws(AccountStoreError) in try await store.lastDeletion(of: account) }
    }
    guard let found, sight.sees(found.team, for: clients) else { throw unknown }
    if found.id == asked {
      logger.notice(
        "a deletion was asked for", ["event.id": .describing(asked), "client": .describing(found.client)])
      announce()
    }
    return try await show(found.id, by: clients)
  }

  /// How far a deletion is.
  func show(_ id: EventID, by clients: Set<ClientID>) async throws(Problem) -> DeletionProgress {
    guard let found = try await progress(of: id), sight.sees(found.deletion.team, for: clients) else {
      throw Problem(.notFound, "There is no such deletion of the caller's apps.")
    }
    return found
  }

  private func progress(of id: EventID) async throws(Problem) -> DeletionProgress? {
    try await ask { store throws(AccountStoreError) in
      try await store.deletion(id, by: [.tokenRevoker, .dataEraser])
    }
  }

  private func ask<Value>(
    _ body: @Loop (any AccountStore) async throws(AccountStoreError) -> Value
  ) async throws(Problem) -> Value {
    do throws(AccountStoreError) {
      return try await body(store)
    } catch {
      logger.error(
        "the account store does not answer",
        ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
      throw .unavailable("The account store does not answer. Repeat the same request.")
    }
  }

  /// An id that nobody guesses.
  private static func newID() throws(Problem) -> EventID {
    do throws(CryptographyError) {
      return id(try SecureRandom.bytes(16))
    } catch {
      throw .unavailable("No random bytes can be had. Repeat the same request.")
    }
  }

  /// The id that follows from a request's key: each caller has its own, for each account.
  private static func id(of account: AccountID, named key: String, by caller: String) -> EventID {
    id(Array(SHA256Digest(ofTexts: ["deletion", caller, account.description, key]).bytes.prefix(16)))
  }

  /// An id unlike any of Apple's or of an operator's.
  private static func id(_ bytes: [UInt8]) -> EventID {
    guard let id = EventID("deletion-\(Base64URL.encode(bytes))") else {
      preconditionFailure("letters, digits, hyphens and underscores")
    }
    return id
  }
}

extension DeletionProgress {
  /// How far it is, in one word.
  enum State: String, CaseIterable {
    /// It is written down.
    case requested
    /// It is announced: the authorization is ended first.
    case revoking
    /// That is done: what is stored of the person is erased.
    case erasing
    /// All of it is done.
    case completed
    /// The person signed in again before it was carried out: nothing of theirs is erased any more.
    case superseded
  }

  /// What was done in a step.
  struct Step {
    let name: String
    let state: String
    var at: Timestamp?
    var targets: [AccountOutcome.Target] = []
  }

  private var revocation: LedgerEntry? { entries[.tokenRevoker] }
  private var erasure: LedgerEntry? { entries[.dataEraser] }

  /// The one word.
  var state: State {
    if let erasure { return Supersession(outcome: erasure.outcome) == .newerSignIn ? .superseded : .completed }
    if revocation != nil { return .erasing }
    return isPublished ? .revoking : .requested
  }

  /// The steps in their order.
  var stepsTaken: [Step] {
    // Whoever has done something about it has read it.
    let isAnnounced = isPublished || !entries.isEmpty
    var all = [Step(name: "announcement", state: isAnnounced ? "published" : "waiting")]
    all.append(Step(name: "revocation", state: revocation.map(Self.word) ?? "waiting", at: revocation?.at))
    // The revoker's word may be forgotten a little before the eraser's is.
    if erasure != nil, revocation == nil { all.removeLast() }
    var last = Step(name: "erasure", state: "waiting")
    if let erasure {
      last = Step(
        name: "erasure", state: Self.word(erasure), at: erasure.at, targets: AccountOutcome.Target.list(erasure.detail))
    } else if !steps.isEmpty {
      last = Step(name: "erasure", state: "in-progress", targets: steps.map(AccountOutcome.Target.init))
    }
    return all + [last]
  }

  /// Whether nobody but the person can end the authorization, or is known to have: without a token Apple cannot be asked.
  var isEndedByHand: Bool {
    guard state != .superseded else { return false }
    guard let revocation else { return !deletion.hadTokens }
    // A sign-in that was under way when it was asked for has brought a token since.
    return [TokenRevoker.Outcome.noToken, .unproven].map(\.rawValue).contains(revocation.outcome)
  }

  private static func word(_ entry: LedgerEntry) -> String {
    switch Supersession(outcome: entry.outcome) {
    case nil: entry.outcome
    case .newerSignIn: "superseded"
    // An event of Apple's that asks for at least as much was carried out.
    case .newerEvent, .erased: "covered"
    }
  }
}

extension DeletionProgress {
  /// As applications are told, with where the audit log is published.
  func json(_ auditLog: HTTPClientURL?) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("id", .string(deletion.id.text)), .init("account", .string(deletion.account.description)),
      .init("requestedAt", .string(deletion.requestedAt.description)), .init("state", .string(state.rawValue)),
      .init("steps", .array(stepsTaken.map(\.json))),
    ]
    if state == .completed {
      var receipt: [JSONValue.Member] = [
        .init("event", .string(deletion.id.text)), .init("command", .string("siwa audit receipt \(deletion.id.text)")),
      ]
      if let auditLog { receipt.append(.init("log", .string(auditLog.text))) }
      members.append(.init("receipt", .object(receipt)))
    }
    if isEndedByHand {
      members.append(.init("endByHand", ["text": .string(Self.words), "url": .string(Self.address)]))
    }
    return .object(members)
  }

  private static let address = "https://account.apple.com"
  private static let words = """
    To stop using Sign in with Apple with this app: on an iPhone or iPad open Settings, tap your name, then Sign in with \
    Apple, choose the app, and stop using it; in a browser do the same at https://account.apple.com.
    """
}

extension DeletionProgress.Step {
  fileprivate var json: JSONValue {
    var members: [JSONValue.Member] = [.init("name", .string(name)), .init("state", .string(state))]
    if let at { members.append(.init("at", .string(at.description))) }
    if !targets.isEmpty {
      let counts = ErasureStep.State.allCases.map { state in (state, targets.count { $0.state == state.rawValue }) }
      members.append(
        .init(
          "targets",
          .object(counts.filter { $0.1 > 0 }.map { .init($0.0.rawValue, .integer(Int64($0.1))) })))
    }
    return .object(members)
  }
}
