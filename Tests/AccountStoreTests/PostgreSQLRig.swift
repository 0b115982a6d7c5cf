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

  /// A database of the shared server, or of one that the test may kill.
  init(of own: PostgreSQLServer? = nil) async throws {
    if let own { server = own } else { server = try await PostgreSQLServer.shared() }
    key = try newMasterKey()
    connectionInfo = try await server.makeDatabase()
  }

  private var database: String { String(connectionInfo.split(separator: "dbname=").last ?? "") }

  var administration: PostgreSQLStoreAdministration { PostgreSQLStoreAdministration(connectionInfo, key) }

  /// Makes the store where there is none, and opens it.
  func open() async throws -> PostgreSQLAccountStore {
    _ = try await administration.migrate()
    return try await PostgreSQLAccountStore.open(connectionInfo, connections: 4, key)
  }

  /// Runs statements under the store's feet, and returns what they say.
  @discardableResult
  func run(_ sql: String) async throws -> String { try await server.psql(sql, database: database) }

  /// The database as its backup has it.
  func dump() async throws -> String { try await server.dump(database: database) }
}
