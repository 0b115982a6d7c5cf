import AccountEvents
import SQLite

extension SQLiteStoreFile {
  /// Wraps with the master key whatever one before it has wrapped.
  func rotateKey(_ progress: (StoreProgress) -> Void) throws(AccountStoreError) -> KeyRotation {
    try write { () throws(AccountStoreError) in
      let wrapped = try SQLiteStoreKeys.readWrapped(from: database)
      for key in wrapped.keys where key.masterKeyID != keys.master.id {
        let anew = try key.rewrapped(with: keys.master)
        try AccountStoreError.translating { () throws(SQLiteError) in
          try database.prepare("UPDATE hash_key SET master_key_id = ?, key = ? WHERE number = ?").run(
            anew.masterKeyID, anew.key, Int64(anew.number))
        }
      }
    }
    let (former, reading, update) = try AccountStoreError.translating { () throws(SQLiteError) in
      (
        try database.prepare(
          """
          SELECT (SELECT count(*) FROM account WHERE master_key_id <> ?1)
            + (SELECT count(*) FROM outbox WHERE master_key_id <> ?1)
            + (SELECT count(*) FROM transfer_plan WHERE master_key_id <> ?1 AND length(data_key) > 0)
          """),
        try database.prepare(
          """
          SELECT hash, data_key, master_key_id FROM account WHERE master_key_id <> ? AND hash > ? ORDER BY hash LIMIT ?
          """),
        try database.prepare("UPDATE account SET data_key = ?, master_key_id = ? WHERE hash = ?")
      )
    }
    let total = try count(former)
    var rotation = KeyRotation()
    var last: [UInt8] = []
    while true {
      let rows = try writePage { () throws(AccountStoreError) in
        var rows: [(hash: AccountHash, dataKey: [UInt8], masterKeyID: String)] = []
        try AccountStoreError.translating { () throws(SQLiteError) in
          try reading.forEach(keys.master.id, last, KeyRotation.page) { row throws(SQLiteError) in
            rows.append((try row.hash(0), try row.value(1), try row.value(2)))
          }
        }
        for row in rows {
          let anew = try keys.master.rewrap(row.dataKey, at: .dataKey(of: row.hash), ofKey: row.masterKeyID)
          try AccountStoreError.translating { () throws(SQLiteError) in
            try update.run(anew, keys.master.id, row.hash.bytes)
          }
        }
        return rows
      }
      guard let end = rows.last else { break }
      last = end.hash.bytes
      rotation.accounts += rows.count
      progress(StoreProgress(.wrapping, done: rotation.accounts, total: max(total, rotation.accounts)))
    }
    try rotateOutbox()
    try rotateTransferPlans()
    rotation.left = try count(former)
    return rotation
  }

  /// What waits to be published is little, or goes soon.
  private func rotateOutbox() throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in
      var rows: [SealedOutboxRecord] = []
      let update = try AccountStoreError.translating { () throws(SQLiteError) in
        try database.prepare(
          "SELECT event_id, account, written_at, master_key_id, record FROM outbox WHERE master_key_id <> ?"
        ).forEach(keys.master.id) { row throws(SQLiteError) in rows.append(try SealedOutboxRecord(reading: row)) }
        return try database.prepare("UPDATE outbox SET record = ?, master_key_id = ? WHERE event_id = ?")
      }
      for row in rows {
        let anew = try keys.master.rewrap(row.record, at: .outbox(row.id), ofKey: row.masterKeyID)
        try AccountStoreError.translating { () throws(SQLiteError) in
          try update.run(anew, keys.master.id, row.id.text)
        }
      }
    }
  }

  /// There are few plans; their users' rows stay as they are.
  private func rotateTransferPlans() throws(AccountStoreError) {
    try write { () throws(AccountStoreError) in
      let (plans, update) = try AccountStoreError.translating { () throws(SQLiteError) in
        (
          try transfers.plans(),
          try database.prepare("UPDATE transfer_plan SET data_key = ?, master_key_id = ? WHERE number = ?")
        )
      }
      for row in plans where row.masterKeyID != keys.master.id {
        let anew = try keys.master.rewrap(row.dataKey, at: .transferPlan(row.plan), ofKey: row.masterKeyID)
        try AccountStoreError.translating { () throws(SQLiteError) in
          try update.run(anew, keys.master.id, row.number)
        }
      }
    }
  }

  private func count(_ former: Statement) throws(AccountStoreError) -> Int {
    try AccountStoreError.translating { () throws(SQLiteError) in
      let count: Int64? = try former.first(keys.master.id) { row throws(SQLiteError) in try row.value(0) }
      return Int(clamping: count ?? 0)
    }
  }
}
