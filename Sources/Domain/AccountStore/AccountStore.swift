package import AccountEvents
package import Cryptography
package import EventLoop

/// What is known of accounts, and what was done about them: SQLite for one host, PostgreSQL for many.
///
/// A call that throws has changed nothing, unless the error is `.uncertain`; then the same call again finds out. Every
/// write is durable when its call returns. Any number of programs may use one store.
@Loop
package protocol AccountStore: TransferStore {
  // MARK: Events and their effects

  /// How each event stands for that consumer, in the order of `events`: whether there is something left to do.
  func standings(
    of events: [EventReference], for consumer: ConsumerName
  ) async throws(AccountStoreError) -> [EventStanding]

  /// Writes what consumers have decided: in one transaction the effects, the rows of the ledger and the fences, each
  /// settlement judged anew in the order given. Returns what became of each, in that order.
  ///
  /// A settlement of an event that is settled or superseded by now changes nothing else; nor does one that only notes the
  /// event as void where it is not. The ledger names superseded events too. Attempts of a settled event are forgotten.
  /// Steps of erasures are recorded whatever becomes of their settlement.
  /// In the same transaction the marks are raised, of partitions that are still claimed as they say. Two calls may be
  /// under way at once.
  func settle(
    _ settlements: [Settlement], announced marks: [AnnouncedMark], at time: Timestamp
  ) async throws(AccountStoreError) -> Settled

  /// Claims partitions for a consumer of this process: marks of earlier claims are raised no more. Returns how far each was
  /// announced, in the order of `claims`. A claim of a partition that begins anew sets its mark back.
  func claim(_ claims: [PartitionClaim], for consumer: ConsumerName) async throws(AccountStoreError) -> [AnnouncedMark]

  /// Counts one more attempt at each of these events that could not be processed, in one transaction; returns what there
  /// was of each by then, in their order.
  func count(_ attempts: [FailedAttempt]) async throws(AccountStoreError) -> [FailedAttempts]

  // MARK: Accounts

  /// A person signed in: from now on, events that happened before `time` do not touch these tokens. Creates the account
  /// where there is none; an account that was erased before begins anew. A sign-in older than the one that is known
  /// changes nothing but adds its tokens.
  ///
  /// Returns whether it is the account's first, and the tokens that are not kept, because their authorization was over
  /// before they became known: nobody else knows them, so whoever called has to revoke them at Apple. Those are all of a
  /// sign-in that is not younger than the account's last erasure, of which nothing is kept at all; and each whose app's
  /// tokens were ended up to a moment that is not before the sign-in.
  ///
  /// With the `request` of an exchange that was begun, that is finished in the same transaction; of one that is finished
  /// already nothing is changed, and what became of it is returned.
  ///
  /// With the `claim` of a believed identity token that the person comes from another team, and within the time for that:
  /// the user of a receiving plan is done, in the same transaction. Where their account of before is in this store, that one
  /// and this are joined: what is known of mail moves, with the address of the claim, and events of our own say so. It stays
  /// with the account of before as well where a token of another app is held there. Where two accounts would become one, the
  /// user is a conflict, and nothing is joined.
  func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken], of request: SHA256Digest?,
    claiming claim: TransferClaim?
  ) async throws(AccountStoreError) -> RecordedSignIn

  /// Whom the operator knows somebody as who has signed in with such a claim; nil where they are not recognized, or the
  /// plan is gone.
  func recognizedTransfer(
    of account: Account, claiming claim: TransferClaim
  ) async throws(AccountStoreError) -> RecognizedTransfer?

  /// The same of somebody who has signed in to an app without such a claim, as once the time for that is over: Apple has
  /// named their account to the receiving side of a plan, or it was joined with one that the sending side knows.
  func recognizedTransfer(
    of account: Account, with client: ClientID
  ) async throws(AccountStoreError) -> RecognizedTransfer?

  /// Notes that a code is about to be sent to Apple, or finds how that stands, and whether a sign-in that came of it was
  /// ended since. Who is told `.begun` is the only one ever.
  func begin(_ exchange: CodeExchange) async throws(AccountStoreError) -> CodeExchange.Standing

  /// Notes that nothing comes of an exchange: Apple did not take its code, or nobody will know what came of it.
  func end(_ exchange: CodeExchange, as ending: CodeExchange.Ending) async throws(AccountStoreError)

  /// Forgets an exchange of which nothing came: as if it had never been begun.
  func forget(_ exchange: CodeExchange) async throws(AccountStoreError)

  /// The exchanges that were begun before `time` and of which nothing came, oldest first: `limit` at most.
  func unfinishedExchanges(before time: Timestamp, limit: Int) async throws(AccountStoreError) -> [CodeExchange]

  /// What is known of an account, all as of one moment. Opens its name and its address.
  func knowledge(of id: AccountID) async throws(AccountStoreError) -> AccountKnowledge

  /// The tokens that are held for the account, oldest first.
  func tokens(of account: Account) async throws(AccountStoreError) -> [StoredToken]

  /// Whether tokens are held that an event ends, in the order of the questions. Opens none of them.
  func holdsTokens(_ questions: [TokenQuestion]) async throws(AccountStoreError) -> [Bool]

  /// The authorizations of the account that we have ended at Apple ourselves and that the person has not given anew: none
  /// that was noted for something before their last sign-in.
  func ownRevocations(of account: Account) async throws(AccountStoreError) -> [OwnRevocation]

  /// Notes that we end an authorization of the account at Apple ourselves, at `time`, for which no event stands: the
  /// `consent-revoked` that follows is no wish of the person's. Changes nothing where such a note is there already.
  func noteOwnRevocation(of account: Account, for client: ClientID, at time: Timestamp) async throws(AccountStoreError)

  /// What is known of mail to each account, in the order of `accounts`. Does not wait behind settlements.
  func relayStates(of accounts: [Account]) async throws(AccountStoreError) -> [RelayKnowledge]

  // MARK: Deletions

  /// A person asks for the deletion of their account in an app: writes that down under the new id `request`, and the event
  /// that announces it into the outbox, in one transaction. Returns the deletion that was asked for before instead, where
  /// nobody has signed in since; nil where there is no such account.
  func requestDeletion(
    of account: Account, in client: ClientID, as request: EventID, at time: Timestamp
  ) async throws(AccountStoreError) -> Deletion?

  /// The deletion of the account that was asked for last; nil where none was.
  func lastDeletion(of account: AccountID) async throws(AccountStoreError) -> Deletion?

  /// When the youngest sign-in of the account was begun of which nothing has come yet, of those that were begun after `time`
  /// and not after `end`.
  func signInUnderWay(
    of account: AccountID, after time: Timestamp, until end: Timestamp
  ) async throws(AccountStoreError) -> Timestamp?

  /// How far a deletion is, all as of one moment, with what these consumers have done; nil where there is none.
  func deletion(
    _ id: EventID, by consumers: [ConsumerName]
  ) async throws(AccountStoreError) -> DeletionProgress?

  /// The deletions that are neither carried out nor void, oldest first, `limit` at most: of which the eraser has settled
  /// nothing, and no later erasure or sign-in is known. `revoker` and `eraser` are the consumers whose parts they wait for.
  func openDeletions(
    _ revoker: ConsumerName, _ eraser: ConsumerName, limit: Int
  ) async throws(AccountStoreError) -> [OpenDeletion]

  // MARK: Events of our own

  /// What waits to be published.
  func outbox() async throws(AccountStoreError) -> OutboxState

  /// The events that wait, in the order in which they were written: `limit` at most, those that do not open included, and
  /// those behind `place` alone. Until `end` nobody but `holder` gets any; nil where somebody else is at it.
  func takeOutbox(
    by holder: String, at time: Timestamp, until end: Timestamp, after place: OutboxPage.Place?, limit: Int
  ) async throws(AccountStoreError) -> OutboxPage?

  /// Removes events that are published.
  func removeFromOutbox(_ events: [EventID]) async throws(AccountStoreError)

  /// Lets others publish at once.
  func leaveOutbox(_ holder: String) async throws(AccountStoreError)

  // MARK: Validation of refresh tokens

  /// The lease of that name; nil where nobody has it.
  func lease(_ name: String) async throws(AccountStoreError) -> Lease?

  /// Takes a lease that stands as it was `seen`: nil where nobody had it. False where somebody else was faster.
  func take(_ lease: Lease, after seen: Lease?) async throws(AccountStoreError) -> Bool

  /// Gives a lease up, if it is still its holder's.
  func giveUp(_ lease: Lease) async throws(AccountStoreError)

  /// Gives out refresh tokens that are due, at most `count`, those first that have been so for longest: of none of `clients`,
  /// none that is known to be invalid, and none that was given out or issued less than `TokenValidation.interval` before
  /// `time`. From then on they count as asked about, whatever becomes of the caller. Renews the lease; nil where it is
  /// somebody else's by now, who gives them out then. 0 only renews.
  func claimTokens(
    _ count: Int, without clients: Set<ClientID>, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> ClaimedTokens?

  /// Writes what was found, in one transaction with the events that follow, which wait in the outbox then. Returns what
  /// became of each, in their order; the same again changes nothing.
  func record(
    _ validations: [TokenValidation], at time: Timestamp
  ) async throws(AccountStoreError) -> [RecordedValidation]

  /// How far the validation of all refresh tokens is. Reads an index as a whole.
  func validationCensus(at time: Timestamp) async throws(AccountStoreError) -> ValidationCensus

  /// How many refresh tokens of an app are held that are not known to be invalid, counted up to `limit`. Where there are
  /// fewer, it looks at all tokens that there are.
  func refreshTokens(of client: ClientID, upTo limit: Int) async throws(AccountStoreError) -> Int

  // MARK: Erasure

  /// The steps of each erasure so far, in the order of `events`, and of one in the order in which its targets were first
  /// recorded.
  func erasureSteps(of events: [EventID]) async throws(AccountStoreError) -> [[ErasureStep]]

  /// Records in one transaction how far targets of erasures are; each step replaces what was recorded of its target before.
  func record(_ steps: [(step: ErasureStep, event: EventReference)]) async throws(AccountStoreError)

  /// What erasures of this consumer's have begun with and not ended, by event and target: at most `limit`, from behind
  /// `place` on; nil is the beginning. What the ledger names is over.
  func openErasures(
    by consumer: ConsumerName, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [OpenErasure]

  /// The targets that each event's erasure has left open and that no weightier erasure of its account has brought to their
  /// end, in the order of `events`. One of an event that is no less severe, and happened no earlier, covers what the other
  /// has left there. Nothing of the account covers what an event of the same id has left open of another account.
  func uncoveredTargets(of events: [EventReference]) async throws(AccountStoreError) -> [[String]]

  /// How many events there are of which an attempt at erasing has failed, and something is left.
  func incompleteErasures(by consumer: ConsumerName) async throws(AccountStoreError) -> Int

  /// How many events there are for which a target has said that it is at work, and that nothing has failed.
  func erasuresInProgress(by consumer: ConsumerName) async throws(AccountStoreError) -> Int

  /// Closes steps of the event's erasure as `discarded`: an operator has decided that nothing more is to be erased there.
  /// `note` takes the place of their detail. Returns the number of steps closed.
  ///
  /// Of a named target also a retention is closed whose day has come; without a name all open steps are. `account` is whose
  /// steps may be closed, for whoever has the id from a record: another record may bear the id of somebody else's event.
  /// Where it is nil, the id alone decides.
  func discardErasure(
    of event: EventID, account: Account?, target: String?, note: String, at time: Timestamp
  ) async throws(AccountStoreError) -> Int

  /// The steps retained until the day of `time` or an earlier one, by event and target: at most `limit`, from behind
  /// `place` on; nil is the beginning. Of one account, or of all where `account` is nil.
  func dueErasures(
    until time: Timestamp, of account: Account?, after place: OpenErasure.Place?, limit: Int
  ) async throws(AccountStoreError) -> [RetainedStep]

  // MARK: After a restore

  /// Whether one of the outcomes is of this store: the ledger has its event with the same hash of the account, or there is
  /// something of that account. In no other store an account has the same hash. Outcomes from before a rotation of the
  /// hashing key are recognized; while one is under way, this throws.
  func recognizes(_ outcomes: [RecordedOutcome]) async throws(AccountStoreError) -> Bool

  /// Brings the store to what the outcomes say is over, in one transaction: whatever it was restored from, who was erased
  /// is erased. What is younger than an outcome stays, and the same again changes nothing. A rehearsal only says what
  /// would change. Outcomes under a hashing key that the store does not have are passed over, and counted; while a rotation
  /// of the key is under way, this throws.
  func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) async throws(AccountStoreError) -> Reconciliation

  // MARK: The store itself

  /// How much room the store takes on its disk, in bytes.
  func size() async throws(AccountStoreError) -> Int64

  /// Asks whether the store could be read and written now.
  func check() async throws(AccountStoreError)

  /// What tells this store from every other: the name of its first hashing key, which says nothing about the key. A copy of
  /// the store bears it, too.
  nonisolated var identity: HashKeyID { get }

  /// The keyed hash that stands for the account wherever its name must not: in outcomes, logs and metrics. It is made
  /// with the newest hashing key that this process knows of: each call that reads or writes finds out about a newer one.
  nonisolated func hash(of account: Account) -> AccountHash

  /// The hashes that have ever stood for the account, one for each hashing key, oldest first: what stands on Kafka, in
  /// logs and elsewhere outside of the store keeps the hash that it was written with.
  nonisolated func hashes(of account: Account) -> [AccountHash]

  /// The hash that stands now for the account of an older one; nil where that was made with a key that the store does not
  /// have.
  nonisolated func newest(of hash: AccountHash) -> AccountHash?

  /// What vouches for a request: a code that nobody can make who has not the store's key.
  nonisolated func code(of request: DeletionRequest) -> String

  /// Whether the code is one of this store's for that very request: under its newest hashing key, or the one before it.
  nonisolated func isGenuine(_ code: String, of request: DeletionRequest) -> Bool

  /// Waits for what is under way, and closes.
  func close() async
}

extension AccountStore {
  /// Records a sign-in without a claim.
  package func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken], of request: SHA256Digest?
  ) async throws(AccountStoreError) -> RecordedSignIn {
    try await recordSignIn(account, at: time, tokens: tokens, of: request, claiming: nil)
  }

  /// Records a sign-in that no exchange is noted of, and returns the tokens that are not kept.
  package func recordSignIn(
    _ account: Account, at time: Timestamp, tokens: [NewToken]
  ) async throws(AccountStoreError) -> [NewToken] {
    try await recordSignIn(account, at: time, tokens: tokens, of: nil).over
  }

  /// The authorizations of these apps that we have ended ourselves; nil is all of the team's.
  package func ownRevocations(
    of account: Account, among clients: Set<ClientID>?
  ) async throws(AccountStoreError) -> [OwnRevocation] {
    try await ownRevocations(of: account).filter { clients?.contains($0.client) ?? true }
  }

  /// The steps of one erasure so far, in the order in which its targets were first recorded.
  package func erasureSteps(of event: EventID) async throws(AccountStoreError) -> [ErasureStep] {
    try await erasureSteps(of: [event])[0]
  }

  /// Records how far one target of an erasure is.
  package func record(_ step: ErasureStep, of event: EventReference) async throws(AccountStoreError) {
    try await record([(step, event)])
  }

  /// Writes what consumers have decided, and raises no mark.
  package func settle(
    _ settlements: [Settlement], at time: Timestamp
  ) async throws(AccountStoreError) -> [SettledOutcome] {
    try await settle(settlements, announced: [], at: time).outcomes
  }
}
