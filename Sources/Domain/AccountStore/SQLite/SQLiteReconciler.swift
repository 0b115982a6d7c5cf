import AccountEvents
import SQLite

/// Brings a store that was restored to what outcomes on Kafka say.
final class SQLiteReconciler {
  private let file: SQLiteStoreFile
  private let known: Statement
  private let reading: Statement

  init(_ file: SQLiteStoreFile) throws(AccountStoreError) {
    self.file = file
    let database = file.database
    (known, reading) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        try database.prepare(
          """
          SELECT EXISTS (SELECT 1 FROM ledger WHERE consumer = ?1 AND event_id = ?2 AND hash = ?3)
            OR EXISTS (SELECT 1 FROM account WHERE hash = ?3) OR EXISTS (SELECT 1 FROM erasure WHERE hash = ?3)
          """),
        try database.prepare(
          """
          SELECT account.hash IS NOT NULL, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at,
            (SELECT since FROM relay WHERE hash = ?1), (SELECT min(issued_at) FROM token WHERE hash = ?1),
            (SELECT issued_up_to FROM ended_authorization WHERE hash = ?1 AND client = '')
          FROM (SELECT 1) LEFT JOIN account ON account.hash = ?1 LEFT JOIN erasure ON erasure.hash = ?1
          """)
      )
    }
  }

  /// Whether one of them is of this store.
  func recognizes(_ outcomes: [RecordedOutcome]) throws(AccountStoreError) -> Bool {
    try AccountStoreError.translating { () throws(SQLiteError) in
      for outcome in outcomes {
        let isKnown: Int64? = try known.first(outcome.consumer.text, outcome.event.text, outcome.account.bytes) {
          row throws(SQLiteError) in try row.value(0)
        }
        if isKnown == 1 { return true }
      }
      return false
    }
  }

  /// Corrects what outcomes contradict, in one transaction.
  func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) throws(AccountStoreError) -> Reconciliation {
    let endings = Endings.gather(outcomes)
    if isRehearsal {
      return try file.snapshot { () throws(AccountStoreError) in
        var reconciliation = Reconciliation()
        for (hash, endings) in endings {
          reconciliation.note(Correction(of: try facts(of: hash), by: endings), of: hash)
        }
        return reconciliation
      }
    }
    let reconciliation = try file.write { () throws(AccountStoreError) in
      var reconciliation = Reconciliation()
      for (hash, endings) in endings {
        let facts = try facts(of: hash)
        let correction = Correction(of: facts, by: endings)
        try apply(correction, hash, facts)
        reconciliation.note(correction, of: hash)
      }
      return reconciliation
    }
    if !reconciliation.erased.isEmpty || !reconciliation.tokens.isEmpty { file.rememberErased() }
    file.forgetErased()
    return reconciliation
  }

  private func apply(
    _ correction: Correction, _ hash: AccountHash, _ facts: ReconciledFacts
  ) throws(AccountStoreError) {
    if let fence = correction.fence {
      _ = try AccountStoreError.translating { () throws(SQLiteError) in try file.accounts.fence(hash, fence) }
    }
    switch correction.erasesUpTo {
    case nil: break
    case .all: try file.delete(hash, upTo: nil, facts.signedInAt)
    case .upTo(let end): try file.delete(hash, upTo: end, facts.signedInAt)
    }
    try AccountStoreError.translating { () throws(SQLiteError) in
      if correction.forgetsMail { try file.relays.remove(hash) }
      if let end = correction.endsTokensUpTo { try file.accounts.endTokens(of: hash, issuedUpTo: end, nil) }
    }
  }

  private func facts(of hash: AccountHash) throws(AccountStoreError) -> ReconciledFacts {
    try AccountStoreError.translating { () throws(SQLiteError) in
      let facts = try reading.first(hash.bytes) { row throws(SQLiteError) in
        let erasedAt = try row.timeIfPresent(2)
        return ReconciledFacts(
          isKept: try row.value(0, as: Int64.self) == 1, accountSignedInAt: try row.timeIfPresent(1),
          erasure: try erasedAt.map { at throws(SQLiteError) in
            ErasureFence(at: at, isFinal: try row.value(3, as: Int64.self) == 1)
          },
          erasureSignedInAt: try row.timeIfPresent(4), mailSince: try row.timeIfPresent(5),
          oldestToken: try row.timeIfPresent(6), tokensEndedAt: try row.timeIfPresent(7))
      }
      guard let facts else { throw .malformed("a row that is always there") }
      return facts
    }
  }
}
