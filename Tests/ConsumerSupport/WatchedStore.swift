package import AccountEvents
package import AccountStore
package import Cryptography
package import EventLoop

/// A store that tells a test of each call before it is made and after it has succeeded, and fails where the test does.
@Loop
package final class WatchedStore: AccountStore {
  package enum Call: Sendable, Hashable {
    case standings, settle, claim, count, recordSignIn, tokens, holdsTokens, relayStates, erasureSteps, record
    case ownRevocations, noteOwnRevocation, check, openErasures, incompleteErasures, discardErasure
    case recognizes, reconcile, size
    case erasuresInProgress, dueErasures, uncoveredTargets
    case begin, end, forget, unfinishedExchanges, signInUnderWay, knowledge
    case requestDeletion, lastDeletion, deletion, openDeletions, outbox, takeOutbox, removeFromOutbox, leaveOutbox
    case lease, take, giveUp, claimTokens, recordValidations, validationCensus, refreshTokens
    case addPlan, transferPlans, updatePlan, removePlan, addUsers, addAccounts, noteImport, transferUsers
    case recordTransfers, transferCensus, recognizedTransfer
  }

  package typealias Watch = @Loop (Call) throws(AccountStoreError) -> Void

  nonisolated let store: any AccountStore
  /// Called before a call is made.
  package var before: Watch = { _ in }
  /// Called after the call has succeeded; the caller does not learn that it has where this throws.
  package var after: Watch = { _ in }
  /// Called with settlements before they are written, none where only marks are raised.
  package var beforeSettling: @Loop ([Settlement]) throws(AccountStoreError) -> Void = { _ in }
  /// Called with the accounts whose state of mail is asked for.
  package var beforeTelling: @Loop ([Account]) throws(AccountStoreError) -> Void = { _ in }
  /// Gives out tokens in the store's place.
  package var claiming: (@Loop (_ count: Int, _ time: Timestamp) -> ClaimedTokens?)?
  /// Takes findings in the store's place.
  package var recording: (@Loop ([TokenValidation]) throws(AccountStoreError) -> [RecordedValidation])?
  /// Counts tokens in the store's place.
  package var counting: (@Loop (_ time: Timestamp) -> ValidationCensus)?
  /// What a call waits for.
  package var gate: @Loop (Call) async -> Void = { _ in }
  /// How many calls of `settle` are under way.
  package private(set) var settling = 0
  /// How many calls the store has at the moment, what waits for `gate` not among them.
  package private(set) var underWay = 0
  /// How often each was called.
  package private(set) var counts: [Call: Int] = [:]

  package init(_ store: any AccountStore) { self.store = store }

  func watch<Value>(
    _ call: Call, _ body: @Loop () async throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    counts[call, default: 0] += 1
    await gate(call)
    underWay += 1
    defer { underWay -= 1 }
    try before(call)
    let value = try await body()
    try after(call)
    return value
  }

  package func standings(
    of events: [EventReference], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [EventStanding] {
    try await watch(.standings) { () throws(AccountStoreError) in try await store.standings(of: events, for: consumer) }
  }

  package func settle(
    _ settlements: [Settlement], announced marks: [AnnouncedMark], at time: Timestamp
  ) async throws(AccountStoreError) -> Settled {
    settling += 1
    defer { settling -= 1 }
    try beforeSettling(settlements)
    return try await watch(.settle) { () throws(AccountStoreError) in
      try await store.settle(settlements, announced: marks, at: time)
    }
  }

  package func claim(
    _ claims: [PartitionClaim], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [AnnouncedMark] {
    try await watch(.claim) { () throws(AccountStoreError) in try await store.claim(claims, for: consumer) }
  }

  package func count(_ attempts: [FailedAttempt]) async throws(AccountStoreError) -> [FailedAttempts] {
    try await watch(.count) { () throws(AccountStoreError) in try await store.count(attempts) }
  }

  package func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken], of request: SHA256Digest?,
    claiming claim: TransferClaim?
  ) async throws(AccountStoreError) -> RecordedSignIn {
    try await watch(.recordSignIn) { () throws(AccountStoreError) in
      try await store.recordSignIn(account, at: time, tokens: tokens, of: request, claiming: claim)
    }
  }

  package func begin(_ exchange: CodeExchange) async throws(AccountStoreError) -> CodeExchange.Standing {
    try await watch(.begin) { () throws(AccountStoreError) in try await store.begin(exchange) }
  }

  package func end(_ exchange: CodeExchange, as ending: CodeExchange.Ending) async throws(AccountStoreError) {
    try await watch(.end) { () throws(AccountStoreError) in try await store.end(exchange, as: ending) }
  }

  package func forget(_ exchange: CodeExchange) async throws(AccountStoreError) {
    try await watch(.forget) { () throws(AccountStoreError) in try await store.forget(exchange) }
  }

  package func unfinishedExchanges(
    before time: Timestamp, limit: Int
  ) async throws(AccountStoreError) -> [CodeExchange] {
    try await watch(.unfinishedExchanges) { () throws(AccountStoreError) in
      try await store.unfinishedExchanges(before: time, limit: limit)
    }
  }

  package func knowledge(of id: AccountID) async throws(AccountStoreError) -> AccountKnowledge {
    try await watch(.knowledge) { () throws(AccountStoreError) in try await store.knowledge(of: id) }
  }

  package func requestDeletion(
    of account: Account, in client: ClientID, as request: EventID, at time: Timestamp
  ) async throws(AccountStoreError) -> Deletion? {
    try await watch(.requestDeletion) { () throws(AccountStoreError) in
      try await store.requestDeletion(of: account, in: client, as: request, at: time)
    }
  }

  package func lastDeletion(of account: AccountID) async throws(AccountStoreError) -> Deletion? {
    try await watch(.lastDeletion) { () throws(AccountStoreError) in try await store.lastDeletion(of: account) }
  }

  package func signInUnderWay(
    of account: AccountID, after time: Timestamp, until end: Timestamp
  ) async throws(AccountStoreError) -> Timestamp? {
    try await watch(.signInUnderWay) { () throws(AccountStoreError) in
      try await store.signInUnderWay(of: account, after: time, until: end)
    }
  }

  package func deletion(
    _ id: EventID, by consumers: [ConsumerName]
  ) async throws(AccountStoreError) -> DeletionProgress? {
    try await watch(.deletion) { () throws(AccountStoreError) in try await store.deletion(id, by: consumers) }
  }

  package func openDeletions(
    _ revoker: ConsumerName, _ eraser: ConsumerName, limit: Int
  ) async throws(AccountStoreError) -> [OpenDeletion] {
    try await watch(.openDeletions) { () throws(AccountStoreError) in
      try await store.openDeletions(revoker, eraser, limit: limit)
    }
  }

  package func outbox() async throws(AccountStoreError) -> OutboxState {
    try await watch(.outbox) { () throws(AccountStoreError) in try await store.outbox() }
  }

  package func takeOutbox(
    by holder: String, at time: Timestamp, until end: Timestamp, after place: OutboxPage.Place?, limit: Int
  ) async throws(AccountStoreError) -> OutboxPage? {
    try await watch(.takeOutbox) { () throws(AccountStoreError) in
      try await store.takeOutbox(by: holder, at: time, until: end, after: place, limit: limit)
    }
  }

  package func removeFromOutbox(_ events: [EventID]) async throws(AccountStoreError) {
    try await watch(.removeFromOutbox) { () throws(AccountStoreError) in try await store.removeFromOutbox(events) }
  }

  package func leaveOutbox(_ holder: String) async throws(AccountStoreError) {
    try await watch(.leaveOutbox) { () throws(AccountStoreError) in try await store.leaveOutbox(holder) }
  }

  package func lease(_ name: String) async throws(AccountStoreError) -> Lease? {
    try await watch(.lease) { () throws(AccountStoreError) in try await store.lease(name) }
  }

  package func take(_ lease: Lease, after seen: Lease?) async throws(AccountStoreError) -> Bool {
    try await watch(.take) { () throws(AccountStoreError) in try await store.take(lease, after: seen) }
  }

  package func giveUp(_ lease: Lease) async throws(AccountStoreError) {
    try await watch(.giveUp) { () throws(AccountStoreError) in try await store.giveUp(lease) }
  }

  package func claimTokens(
    _ count: Int, without clients: Set<ClientID>, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> ClaimedTokens? {
    try await watch(.claimTokens) { () throws(AccountStoreError) in
      if let claiming { return claiming(count, time) }
      return try await store.claimTokens(count, without: clients, under: lease, at: time)
    }
  }

  package func record(
    _ validations: [TokenValidation], at time: Timestamp
  ) async throws(AccountStoreError) -> [RecordedValidation] {
    try await watch(.recordValidations) { () throws(AccountStoreError) in
      if let recording { return try recording(validations) }
      return try await store.record(validations, at: time)
    }
  }

  package func validationCensus(at time: Timestamp) async throws(AccountStoreError) -> ValidationCensus {
    try await watch(.validationCensus) { () throws(AccountStoreError) in
      if let counting { return counting(time) }
      return try await store.validationCensus(at: time)
    }
  }

  package func refreshTokens(of client: ClientID, upTo limit: Int) async throws(AccountStoreError) -> Int {
    try await watch(.refreshTokens) { () throws(AccountStoreError) in
      try await store.refreshTokens(of: client, upTo: limit)
    }
  }

  package func tokens(of account: Account) async throws(AccountStoreError) -> [StoredToken] {
    try await watch(.tokens) { () throws(AccountStoreError) in try await store.tokens(of: account) }
  }

  package func holdsTokens(_ questions: [TokenQuestion]) async throws(AccountStoreError) -> [Bool] {
    try await watch(.holdsTokens) { () throws(AccountStoreError) in try await store.holdsTokens(questions) }
  }

  package func ownRevocations(of account: Account) async throws(AccountStoreError) -> [OwnRevocation] {
    try await watch(.ownRevocations) { () throws(AccountStoreError) in try await store.ownRevocations(of: account) }
  }

  package func relayStates(of accounts: [Account]) async throws(AccountStoreError) -> [RelayKnowledge] {
    try await watch(.relayStates) { () throws(AccountStoreError) in
      try beforeTelling(accounts)
      return try await store.relayStates(of: accounts)
    }
  }

  package func erasureSteps(of events: [EventID]) async throws(AccountStoreError) -> [[ErasureStep]] {
    try await watch(.erasureSteps) { () throws(AccountStoreError) in try await store.erasureSteps(of: events) }
  }

  package func uncoveredTargets(of events: [EventReference]) async throws(AccountStoreError) -> [[String]] {
    try await watch(.uncoveredTargets) { () throws(AccountStoreError) in try await store.uncoveredTargets(of: events) }
  }

  package func record(_ steps: [(step: ErasureStep, event: EventReference)]) async throws(AccountStoreError) {
    try await watch(.record) { () throws(AccountStoreError) in try await store.record(steps) }
  }

  package func openErasures(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [OpenErasure] {
    try await watch(.openErasures) { () throws(AccountStoreError) in
      try await store.openErasures(by: consumer, after: place, limit: limit)
    }
  }

  package func incompleteErasures(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await watch(.incompleteErasures) { () throws(AccountStoreError) in
      try await store.incompleteErasures(by: consumer)
    }
  }

  package func erasuresInProgress(by consumer: ConsumerName) async throws(AccountStoreError) -> Int {
    try await watch(.erasuresInProgress) { () throws(AccountStoreError) in
      try await store.erasuresInProgress(by: consumer)
    }
  }

  package func discardErasure(
    of event: EventID, account: Account?, target: String?, note: String, at time: Timestamp
  ) async throws(AccountStoreError) -> Int {
    try await watch(.discardErasure) { () throws(AccountStoreError) in
      try await store.discardErasure(of: event, account: account, target: target, note: note, at: time)
    }
  }

  package func dueErasures(
    until time: Timestamp, of account: Account?, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [RetainedStep] {
    try await watch(.dueErasures) { () throws(AccountStoreError) in
      try await store.dueErasures(until: time, of: account, after: place, limit: limit)
    }
  }

  package func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool {
    try await watch(.recognizes) { () throws(AccountStoreError) in try await store.recognizes(outcomes) }
  }

  package func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation {
    try await watch(.reconcile) { () throws(AccountStoreError) in
      try await store.reconcile(with: outcomes, isRehearsal: isRehearsal)
    }
  }

  package func noteOwnRevocation(
    of account: Account, for client: ClientID, at time: Timestamp
  ) async throws(AccountStoreError) {
    try await watch(.noteOwnRevocation) { () throws(AccountStoreError) in
      try await store.noteOwnRevocation(of: account, for: client, at: time)
    }
  }

  package func size() async throws(AccountStoreError) -> Int64 {
    try await watch(.size) { () throws(AccountStoreError) in try await store.size() }
  }

  package func check() async throws(AccountStoreError) {
    try await watch(.check) { () throws(AccountStoreError) in try await store.check() }
  }

  package nonisolated func code(of request: DeletionRequest) -> String { store.code(of: request) }

  package nonisolated func isGenuine(_ code: String, of request: DeletionRequest) -> Bool {
    store.isGenuine(code, of: request)
  }

  package nonisolated var identity: HashKeyID { store.identity }

  package nonisolated func hash(of account: Account) -> AccountHash { store.hash(of: account) }

  package nonisolated func hashes(of account: Account) -> [AccountHash] { store.hashes(of: account) }

  package nonisolated func newest(of hash: AccountHash) -> AccountHash? { store.newest(of: hash) }

  package func close() async { await store.close() }
}
