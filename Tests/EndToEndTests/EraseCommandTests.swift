import EventLoop
import SQLite
import TestSupport
import Testing

/// `siwa erase --dry-run`, as an operator uses it.
@Loop @Suite(.timeLimit(.minutes(3))) struct EraseCommandTests {
  private let files = TemporaryDirectory()

  private func run(
    _ words: [String], input: String = "", shop: String = ""
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let path = files.write(
      "siwa.yaml",
      """
      teams: { A1B2C3D4E5: { erase: { consent-revoked: [search] } } }
      kafka: { bootstrap.servers: "127.0.0.1:9" }
      data-eraser:
        targets:
          shop:
            sqlite: shop.sqlite
            \(shop)
            count: SELECT count(*) FROM customer WHERE sub = $1
            erase: ["DELETE FROM customer WHERE sub = $1"]
            find: SELECT count(*) FROM customer WHERE sub = $1
          search: { topics: [search.customers] }
          invoices: { retain: a law, until: 2036-12-31 }
      """)
    return try await RunningProgram.finish(
      path: RunningProgram.path(of: "siwa"), ["erase", "--config", path, "--team", "A1B2C3D4E5"] + words, input: input)
  }

  @Test func saysWhatWouldBeErasedAndErasesNothing() async throws {
    let database = try Database(files.path + "/shop.sqlite", .readWrite(pageSize: 4096), busyTimeout: .zero)
    try database.execute("CREATE TABLE customer (sub TEXT); INSERT INTO customer VALUES ('ada'), ('ada'), ('bob')")
    for _ in 1...2 {
      let outcome = try await run(["--dry-run", "--sub", "-"], input: "ada\n")
      #expect(outcome.end == .exit(0), "\(outcome.errors)")
      #expect(
        outcome.output == """
          shop: 2 found, would be erased
          search: cannot count, would be told to erase
          invoices: stays: a law, until 2036-12-31
          account-store: would be erased

          """)
    }
    let consent = try await run(["--dry-run", "--sub", "ada", "--on", "consent-revoked"])
    #expect(consent.output.hasPrefix("shop: not touched by consent-revoked\nsearch: cannot count"))
    let cascading = try await run(["--dry-run", "--sub", "ada"], shop: "foreign-keys: true")
    #expect(
      cascading.output.hasPrefix("shop: 2 found, would be erased, and what its foreign keys cascade to\n"),
      "\(cascading.errors)")
  }

  @Test func refusesToErase() async throws {
    let outcome = try await run(["--sub", "ada"])
    #expect(outcome.end == .exit(2) && outcome.errors.contains("--dry-run"))
  }

  @Test func saysWhichTargetCannotBeAsked() async throws {
    let outcome = try await run(["--dry-run", "--sub", "ada"])
    #expect(outcome.end == .exit(1) && outcome.errors.contains("siwa: shop: misconfigured"))
    #expect(outcome.output.contains("invoices: stays"))
  }
}
