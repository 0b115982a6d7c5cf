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
            OR EXISTS (SELECT 1 FROM account WHERE hash = ?3) OR EXISTS (SELECT 1 FROM erasure_fence WHERE hash = ?3)
          """),
        try database.prepare(
          """
          SELECT data_key, master_key_id, account.signed_in_at, erasure.at, erasure.is_final, erasure.signed_in_at,
            account.team, account.subject,
            (SELECT since FROM mail WHERE hash = ?1), (SELECT min(issued_at) FROM token WHERE hash = ?1),
            (SELECT issued_up_to FROM ended_authorization WHERE hash = ?1 AND client = '')
          FROM (SELECT 1) LEFT JOIN account ON account.hash = ?1
            LEFT JOIN erasure_fence AS erasure ON erasure.hash = ?1
          """)
      )
    }
  }

  /// Whether one of them is of this store.
  func recognizes(_ outcomes: [RecordedOutcome]) throws(AccountStoreError) -> Bool {
    try file.snapshot { () throws(AccountStoreError) in
      let outcomes = try CurrentOutcomes(outcomes, file.keys).outcomes
      return try AccountStoreError.translating { () throws(SQLiteError) in try isAnyKnown(outcomes) }
    }
  }

  private func isAnyKnown(_ outcomes: [RecordedOutcome]) throws(SQLiteError) -> Bool {
    for outcome in outcomes {
      let isKnown: Int64? = try known.first(outcome.consumer.text, outcome.event.text, outcome.account.bytes) {
        row throws(SQLiteError) in try row.value(0)
      }
      if isKnown == 1 { return true }
    }
    return false
  }

  /// Corrects what outcomes contradict, in one transaction.
  func reconcile(
    with outcomes: [RecordedOutcome], isRehearsal: Bool
  ) throws(AccountStoreError) -> Reconciliation {
    func corrections(
      _ current: CurrentOutcomes
    ) throws(AccountStoreError) -> [(account: RestoredAccount, correction: Correction)] {
      let endings = Endings.gather(current.outcomes)
      return try AccountStoreError.translating { () throws(SQLiteError) in
        var accounts: [RestoredAccount] = []
        for hash in endings.keys { accounts.append(try account(hash)) }
        return Endings.corrections(of: accounts, by: endings)
      }
    }
    if isRehearsal {
      return try file.snapshot { () throws(AccountStoreError) in
        let current = try CurrentOutcomes(outcomes, file.keys)
        return Reconciliation(try corrections(current), unknownKeys: current.unknownKeys)
      }
    }
    return try file.write { () throws(AccountStoreError) in
      let current = try CurrentOutcomes(outcomes, file.keys)
      let wrong = try corrections(current)
      var changed: [ChangedAccount] = []
      for (account, correction) in wrong {
        let kept = try AccountStoreError.translating { () throws(SQLiteError) in
          try file.accounts.kept(of: account.hash)
        }
        var change = ChangedAccount(account.hash, account.facts, kept: kept)
        try change.apply(correction, account.row, file.keys)
        changed.append(change)
      }
      try file.write(changed)
      let reconciliation = Reconciliation(wrong, unknownKeys: current.unknownKeys)
      if !reconciliation.erased.isEmpty || !reconciliation.tokens.isEmpty { file.rememberErased() }
      return reconciliation
    }
  }

  private func account(_ hash: AccountHash) throws(SQLiteError) -> RestoredAccount {
    let account = try reading.first(hash.bytes) { row throws(SQLiteError) in
      let facts = try AccountFacts(reading: row, from: 0)
      var account = RestoredAccount(
        hash: hash, facts: facts, mailSince: try row.timeIfPresent(8), oldestToken: try row.timeIfPresent(9),
        tokensEndedAt: try row.timeIfPresent(10))
      if let key = facts.key {
        account.row = SealedAccount(hash: hash, team: try row.value(6), subject: try row.value(7), key: key)
      }
      return account
    }
    guard let account else { throw .malformed("a row that is always there") }
    return account
  }
}
