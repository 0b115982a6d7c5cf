import EventLoop
import TestSupport
import Testing

@testable import AccountStore

/// A store in a database of its own, which a test can get at from beneath.
@Loop
final class PostgreSQLRig {
  let server: PostgreSQLServer
  let key: MasterKey
  /// What libpq wants to hear of the database.
  let connectionInfo: String
  private let hashKey: [UInt8]?

  /// A database of the shared server, or of one that the test may kill.
  init(of own: PostgreSQLServer? = nil, hashKey: [UInt8]? = Sample.hashKey) async throws {
    self.hashKey = hashKey
    if let own { server = own } else { server = try await PostgreSQLServer.shared() }
    key = try newMasterKey()
    connectionInfo = try await server.makeDatabase()
  }

  private var database: String { String(connectionInfo.split(separator: "dbname=").last ?? "") }

  var administration: PostgreSQLStoreAdministration { PostgreSQLStoreAdministration(connectionInfo, key) }

  /// Makes the store where there is none, with the key of these tests for its hashes, and opens it.
  func open() async throws -> PostgreSQLAccountStore {
    if try await administration.begin(), let hashKey {
      let digits = try key.wrap(hashKey, for: .hashKey(1)).map {
        String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
      }
      try await run("UPDATE siwa.hash_key SET key = '\\x\(digits.joined())'")
    }
    // Hundreds of tests share the server, and a machine.
    return try await PostgreSQLAccountStore.open(connectionInfo, connections: 4, key, statementTimeout: .seconds(300))
  }

  /// Runs statements under the store's feet, and returns what they say.
  @discardableResult
  func run(_ sql: String) async throws -> String { try await server.psql(sql, database: database) }

  /// The database as its backup has it.
  func dump() async throws -> String { try await server.dump(database: database) }
}
