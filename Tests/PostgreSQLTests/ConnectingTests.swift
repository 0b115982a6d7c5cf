import EventLoop
import Glibc
import PostgreSQL
import TestSupport
import Testing

/// How connections come to stand, and why they do not.
@Loop @Suite(PostgreSQLServer.isThere) struct ConnectingTests {
  /// The error of using a pool with the given settings behind those of a new database.
  private func refusal(_ settings: String, leaseTimeout: Duration = .seconds(300)) async throws -> PostgreSQLError? {
    let database = try await PostgreSQLServer.shared().makeDatabase()
    let pool = try TestPool("\(database) \(settings)", leaseTimeout: leaseTimeout).pool
    let error = await failure { try await pool.withConnection { _ in } }
    #expect(error?.isUncertain == false && error?.description.contains("wrong") == false)
    return error
  }

  @Test func aPasswordIsChecked() async throws {
    let database = try await PostgreSQLServer.shared().makeDatabase()
    try await TestPool("\(database) user=guarded password=correct").pool.withConnection { _ in }
    let wrong = try await refusal("user=guarded password=wrong")
    #expect(wrong?.code == .authentication && wrong?.sqlState == "28P01" && wrong?.isRetriable == false)
    let missing = try await refusal("user=guarded passfile=/dev/null")
    #expect(missing?.code == .authentication)
    let unknown = try await refusal("user=nobody_of_that_name")
    #expect(unknown?.code == .authentication && unknown?.sqlState == "28000")
  }

  @Test func anUnknownDatabaseIsSaid() async throws {
    let error = try await refusal("dbname=nowhere")
    #expect(error?.code == .unknownDatabase && error?.sqlState == "3D000" && error?.isRetriable == false)
  }

  @Test func nobodyAtTheSocketMayBeTriedAgain() async throws {
    let error = try await refusal("host=/nowhere", leaseTimeout: .seconds(20))
    #expect(error?.code == .connection && error?.isRetriable == true)
    #expect(error?.detail.contains("/nowhere") == true)
  }

  @Test func whoAnswersNothingIsGivenUp() async throws {
    let listener = try ListeningSocket(.loopback(port: 0))
    let pool = try TestPool(
      "host=127.0.0.1 port=\(listener.address.port) dbname=x", connectTimeout: .milliseconds(50),
      leaseTimeout: .seconds(20)
    ).pool
    let error = await failure { try await pool.withConnection { _ in } }
    // By our limit, or by libpq's own of two seconds where a busy machine looks at ours later.
    #expect(error?.code == .connection && error?.isRetriable == true, "\(String(describing: error))")
    listener.close()
  }

  @Test(arguments: [
    "postgresql://ada:secret@host/db?nonsense=1", "host=x secret", "password='secret", "nonsense=secret",
    "host=x\0secret",
  ])
  func aTextThatNamesNoDatabaseIsNotRepeated(text: String) {
    let error = #expect(throws: PostgreSQLError.self) { try TestPool(text) }
    #expect(error?.code == .configuration && "\(String(reflecting: error))".contains("secret") == false)
  }

  @Test func theConfigurationDoesNotShowItsPassword() throws {
    let configuration = try PostgreSQLConfiguration(
      connectionInfo: "postgresql://ada:secret@db.example/siwa?sslmode=verify-full", size: 1,
      connectTimeout: .seconds(1), leaseTimeout: .seconds(1), statementTimeout: .seconds(1),
      responseTimeout: .seconds(2), defaultIsolation: .serializable, transactionAttempts: 1)
    #expect("\(configuration)" == "PostgreSQL(dbname=siwa host=db.example sslmode=verify-full)")
    var dumped = ""
    dump(configuration, to: &dumped)
    #expect(!"\(dumped)\(String(reflecting: configuration))\(Optional(configuration) as Any)".contains("secret"))
  }

  @Test func tlsThatTheServerDoesNotHaveIsNotDoneWithout() async throws {
    let server = try await PostgreSQLServer(["listen_addresses=127.0.0.1"])
    let database = "host=127.0.0.1 port=\(server.port) user=guarded password=correct dbname=postgres"
    try await TestPool("\(database) sslmode=prefer").pool.withConnection { _ in }
    let pool = try TestPool("\(database) sslmode=require", leaseTimeout: .seconds(20)).pool
    let error = await failure { try await pool.withConnection { _ in } }
    #expect(error?.code == .connection && error?.detail.contains("SSL") == true)
  }

  @Test func overTLSTheServerHasToBeTheOneMeant() async throws {
    let server = try await PostgreSQLServer(["listen_addresses=127.0.0.1", "ssl=on"])
    let database =
      "host=127.0.0.1 port=\(server.port) user=guarded password=correct dbname=postgres sslmode=verify-full"
    let trusting = try TestPool("\(database) sslrootcert=\(server.directory)/data/server.crt").pool
    let text = String(repeating: "x", count: 20_000)
    try await trusting.withConnection { connection in
      let isEncrypted = try await connection.first("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") {
        row throws(PostgreSQLError) in try row.value(0, as: Bool.self)
      }
      #expect(isEncrypted == true)
      var batch = Batch()
      for _ in 0..<300 { batch.append("SELECT $1", text) }
      let counts = try await connection.run(batch)
      #expect(counts.count == 300)
      var bytes = 0
      try await connection.forEach("SELECT repeat('x', n) FROM generate_series(1, 3000) AS n", limit: .many) {
        row throws(PostgreSQLError) in bytes += try row.value(0, as: String.self).utf8.count
      }
      #expect(bytes == 3000 * 3001 / 2)
    }
    let other = TemporaryDirectory().path + "/nothing.pem"
    let pool = try TestPool("\(database) sslrootcert=\(other)", leaseTimeout: .seconds(30)).pool
    let error = await failure { try await pool.withConnection { _ in } }
    #expect(error?.code == .connection && error?.detail.contains("root certificate") == true)
  }

  /// Each attempt blocks as long as it likes: libpq opens the file of authorities, here a pipe into which nobody writes.
  @Test func anAttemptThatHangsHoldsUpNoOtherPool() async throws {
    let server = try await PostgreSQLServer(["listen_addresses=127.0.0.1", "ssl=on"])
    let database = "host=127.0.0.1 port=\(server.port) user=postgres dbname=postgres"
    let files = TemporaryDirectory()
    let authorities = files.path + "/authorities.pem"
    try #require(unsafe mkfifo(authorities, 0o600) == 0)
    let hanging = try TestPool("\(database) sslmode=verify-ca sslrootcert=\(authorities)").pool
    let waiting = Task(executorPreference: Loop.executor) { try await hanging.withConnection { _ in } }
    // Can be opened without waiting only once somebody reads.
    var writer: CInt = -1
    try await until {
      unsafe writer = open(authorities, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      return writer >= 0
    }
    try await TestPool("\(database) sslmode=disable", leaseTimeout: .seconds(300)).pool.withConnection { _ in }
    waiting.cancel()
    _ = await waiting.result
    // Not waited for either: the attempt hangs still.
    await hanging.close(within: .seconds(300))
    close(writer)
  }

  @Test func behindAHostThatSaysNothingComesTheNextOne() async throws {
    let server = try await PostgreSQLServer(["listen_addresses=127.0.0.1"])
    let silent = try ListeningSocket(.loopback(port: 0))
    let pool = try TestPool(
      "host=127.0.0.1,127.0.0.1 port=\(silent.address.port),\(server.port) user=postgres dbname=postgres",
      connectTimeout: .milliseconds(100), leaseTimeout: .seconds(300)
    ).pool
    try await pool.withConnection { _ in }
    silent.close()
  }

  @Test func behindAHostThatOnlyReadsComesTheOneThatWrites() async throws {
    let standby = try await PostgreSQLServer(["listen_addresses=127.0.0.1"])
    try await standby.psql("ALTER DATABASE postgres SET default_transaction_read_only = on", database: "postgres")
    let primary = try await PostgreSQLServer(["listen_addresses=127.0.0.1"])
    let pool = try TestPool(
      "host=127.0.0.1,127.0.0.1 port=\(standby.port),\(primary.port) user=postgres dbname=postgres "
        + "target_session_attrs=read-write"
    ).pool
    try await pool.withConnection { _ = try await $0.execute("CREATE TABLE number ()") }
  }

  @Test(arguments: [
    ("host=db.example", "prefer"), ("host=db.example sslmode=require", "require"),
    ("postgresql://ada:secret@db.example/siwa", "prefer"), ("hostaddr=192.0.2.1 host=localhost", "prefer"),
    ("host=/run/postgresql,db.example sslmode=disable", "disable"), ("host=10.0.0.1", "prefer"),
  ])
  func aServerThatCouldBeAnybodyIsAWeakness(text: String, mode: String) {
    let weakness = PostgreSQLConfiguration.weaknesses(of: text).first
    #expect(weakness?.hasPrefix("sslmode=\(mode) does not make sure who the server is") == true)
    #expect(weakness?.contains("secret") == false)
  }

  @Test(arguments: ["service=siwa", "service=siwa sslmode=require", "postgresql:///siwa?service=siwa"])
  func aServerThatAFileOfServicesNamesIsAWeakness(text: String) {
    let weaknesses = PostgreSQLConfiguration.weaknesses(of: text)
    #expect(weaknesses.count == 1 && weaknesses[0].contains("say sslmode=verify-full here"), "\(weaknesses)")
  }

  @Test(arguments: [
    "service=siwa sslmode=verify-full", "service=siwa host=localhost",
    "host=db.example sslmode=verify-full", "postgresql://db.example/siwa?sslmode=verify-ca", "host=/run/postgresql",
    "dbname=siwa", "host=localhost", "host=127.0.0.1", "host=::1", "host=db.example hostaddr=127.0.0.1", "nonsense",
  ])
  func aServerThatIsKnownIsNone(text: String) {
    #expect(PostgreSQLConfiguration.weaknesses(of: text) == [])
  }

  /// libpq would stay with a standby for ever, where that is the first that answers.
  @Test(arguments: [
    ("host=a,b", "any"), ("host=a,b target_session_attrs=any", "any"), ("hostaddr=192.0.2.1,192.0.2.2", "any"),
    ("host=a,b target_session_attrs=read-write", nil), ("host=a,b target_session_attrs=primary", nil), ("host=a", nil),
  ])
  func severalHostsOfWhichTheFirstMayOnlyReadAreAWeakness(text: String, attributes: String?) {
    let weaknesses = PostgreSQLConfiguration.weaknesses(of: "\(text) sslmode=verify-full")
    #expect(weaknesses.count == (attributes == nil ? 0 : 1))
    if let attributes { #expect(weaknesses.first?.contains("target_session_attrs=\(attributes) stays") == true) }
  }
}
