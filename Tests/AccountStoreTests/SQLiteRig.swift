import EventLoop
import Foundation
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// A store in a file, which a test can get at from beneath.
@Loop
final class SQLiteRig {
  let files = TemporaryDirectory()
  let key: MasterKey
  private let hashKey: [UInt8]?
  var path: String { files.path + "/store.sqlite" }

  init(hashKey: [UInt8]? = Sample.hashKey) throws {
    self.hashKey = hashKey
    let text = try MasterKey.newText()
    key = try MasterKey(file: files.write("master-key", text))
  }

  var administration: SQLiteStoreAdministration { SQLiteStoreAdministration(path, key) }

  /// Makes the store where there is none, with the key of these tests for its hashes, and opens it.
  func open() async throws -> SQLiteAccountStore {
    if try await administration.begin(), let hashKey {
      try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
        .prepare("UPDATE hash_key SET key = ?").run(try key.wrap(hashKey, for: .hashKey(1)))
    }
    return try await SQLiteAccountStore.open(path, key)
  }

  /// Changes what is in the file, under the store's feet.
  func execute(_ sql: StaticString) throws {
    let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try database.execute("PRAGMA foreign_keys = OFF")
    try database.execute(sql)
  }

  /// Puts a copy of the file into its place, and with the next call the file itself.
  func exchangeFile() throws {
    let (copy, between) = (files.path + "/copy", files.path + "/between")
    if !FileManager.default.fileExists(atPath: copy) { try FileManager.default.copyItem(atPath: path, toPath: copy) }
    for (from, to) in [(path, between), (copy, path), (between, copy)] {
      try FileManager.default.moveItem(atPath: from, toPath: to)
    }
  }

  /// Removes the log beside the file, as who copies a backup over it does.
  func removeLog() throws {
    for end in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + end) }
  }

  /// A number that the file has.
  func number(_ sql: StaticString) throws -> Int64? {
    try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300)).prepare(sql).first {
      row throws(SQLiteError) in try row.value(0)
    }
  }

  /// Which of the texts stand in any file of the store.
  func found(_ texts: [String]) throws -> [String] {
    let content = try content()
    return texts.filter { content.range(of: Data($0.utf8)) != nil }
  }

  /// The bytes of all files of the store.
  func content() throws -> Data {
    var content = Data()
    for name in try FileManager.default.contentsOfDirectory(atPath: files.path) where name != "master-key" {
      content += try Data(contentsOf: URL(fileURLWithPath: "\(files.path)/\(name)"))
    }
    return content
  }

  /// The mode of each file of the store.
  func modes() throws -> [String: Int] {
    var modes: [String: Int] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: files.path) {
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(files.path)/\(name)")
      modes[name] = (attributes[.posixPermissions] as? NSNumber)?.intValue
    }
    return modes
  }

  /// Makes the store, which nobody has open, one of version 4, with all that is in it.
  func makeOlder() throws {
    let old = path + ".old"
    for end in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: old + end) {
      try FileManager.default.removeItem(atPath: old + end)
    }
    let database = try Database(old, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try database.execute("PRAGMA foreign_keys = OFF")
    for step in SQLiteMigrations.steps[..<4] { try database.execute(step) }
    try database.prepare("ATTACH ? AS later").run(path)
    try database.execute(
      """
      INSERT INTO hash_key SELECT * FROM later.hash_key;
      INSERT INTO account SELECT * FROM later.account;
      INSERT INTO token SELECT number, hash, fingerprint, kind, client, issued_at, value FROM later.token;
      INSERT INTO relay SELECT hash, status, since, is_private, address FROM later.mail;
      INSERT INTO fence SELECT consumer, hash, severity, at, tie, generation FROM later.event_fence;
      INSERT INTO fence
      SELECT fence_consumer, hash, fence_severity, fence_at, fence_tie, account.generation
      FROM later.mail JOIN later.account USING (hash) WHERE fence_consumer IS NOT NULL
      ON CONFLICT DO UPDATE SET at = excluded.at, tie = excluded.tie WHERE (excluded.at, excluded.tie) > (at, tie);
      INSERT INTO ledger (consumer, event_id, hash, outcome, detail, at, topic, partition, "offset", generation)
      SELECT consumer, event_id, hash, outcome, detail, at, topic, partition, "offset", generation FROM later.ledger;
      INSERT INTO erasure_fence SELECT * FROM later.erasure_fence;
      INSERT INTO ended_authorization SELECT * FROM later.ended_authorization;
      INSERT INTO own_revocation SELECT * FROM later.own_revocation;
      INSERT INTO attempt SELECT * FROM later.attempt;
      INSERT INTO announced SELECT * FROM later.announced;
      INSERT INTO erasure_progress (
        number, event_id, target, hash, state, before, affected, after, detail, at, generation)
      SELECT number, event_id, target, hash, state, before, affected, after, detail, at, generation
      FROM later.erasure_progress;
      DETACH later
      """)
    try #require(try database.truncateLog())
    for end in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + end) {
      try FileManager.default.removeItem(atPath: path + end)
    }
    try FileManager.default.copyItem(atPath: old, toPath: path)
  }
}
