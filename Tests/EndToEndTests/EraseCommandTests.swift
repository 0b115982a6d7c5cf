import AccountEvents
import AccountStore
import EventLoop
import Foundation
import Glibc
import Kafka
import LogSupport
import SQLite
import TestSupport
import Testing

/// `siwa erase`, as an operator uses it.
@Loop @Suite(.timeLimit(.minutes(30))) struct EraseCommandTests {
  private let files = TemporaryDirectory()

  private func run(
    _ words: [String], input: String = "", shop: String = "", servers: String = "127.0.0.1:9"
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let path = files.write(
      "siwa.yaml",
      """
      teams:
        A1B2C3D4E5: { audiences: [com.example.web, com.example.app], erase: { consent-revoked: [search] } }
      kafka: { bootstrap.servers: "\(servers)" }
      store: { sqlite: store.sqlite, master-key: master-key }
      audit-log: { directory: log }
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
    let team = words.contains("--team") ? [] : ["--team", "A1B2C3D4E5"]
    return try await RunningProgram.finish(
      path: RunningProgram.path(of: "siwa"), ["erase", "--config", path] + team + words, input: input)
  }

  /// The store whose key vouches for a request.
  private func makeStore() async throws -> any AccountStore {
    let key = try MasterKey(file: files.write("master-key", String(repeating: "A", count: 43) + "\n"))
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", key)
    return try await SQLiteAccountStore.open(files.path + "/store.sqlite", key)
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

  @Test func asksForADeletionOnceWithWhoAndWhy() async throws {
    let store = try await makeStore()
    let cluster = try EmbeddedCluster(brokers: 1)
    try cluster.createTopic(Topic.accountEvents.name, partitions: 3)
    let words = ["--sub", "-", "--by", "bob", "--reason", "a letter", "--yes"]
    let first = try await run(words, input: "ada\n", servers: cluster.bootstrapServers)
    #expect(first.end == .exit(0), "\(first.errors)")
    let lines = first.output.split(separator: "\n")
    try #require(lines.count == 2)
    let id = try #require(lines[0].split(separator: " ").last.map(String.init))
    #expect(id.hasPrefix("operator-") && id.utf8.count == 35)
    #expect(lines[1].hasPrefix("asked for  apple.account-events.v1/"))
    // As somebody would who does not know whether it was.
    let again = try await run(words + ["--id", id], input: "ada\n", servers: cluster.bootstrapServers)
    #expect(again.end == .exit(0), "\(again.errors)")
    // What is known by that id is Ada's alone.
    let other = try await run(words + ["--id", id], input: "bob\n", servers: cluster.bootstrapServers)
    #expect(other.end == .exit(2) && other.output.isEmpty)
    #expect(other.errors == "siwa: --id is not of a request for this account\n")

    let consumer = try Consumer(
      KafkaConfiguration(properties: [("bootstrap.servers", cluster.bootstrapServers)]), group: nil, log: { _ in })
    try consumer.assign(
      (0..<3).map { PartitionStart(topic: Topic.accountEvents.name, partition: $0, at: .beginning) })
    var records: [ConsumedRecord] = []
    while records.count < 2 { records += try await consumer.next(upTo: 2) }
    await consumer.close()
    #expect(Set(records.map(\.position.partition)).count == 1)
    for record in records {
      let event = try AccountEvent(decoding: try #require(record.value))
      #expect(event.id.text == id && event.kind == .accountDeletionRequested)
      #expect(event.account.key == Array("A1B2C3D4E5/ada".utf8) && record.key == event.account.key)
      #expect(event.audience.text == "com.example.app")
      func header(_ name: String) -> String? {
        record.headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
      }
      #expect(header("ce_source") == "urn:siwa:operator" && header("ce_id") == id)
      #expect(header("ce_type") == "com.apple.siwa.account-deletion-requested.v1")
      #expect(header("requested-by") == "bob" && header("request-reason") == "a letter")
      #expect(header("apple-jws") == nil)
      let code = try #require(header("request-code"))
      func request(by person: String) throws -> DeletionRequest {
        DeletionRequest(try #require(record.value), by: Array(person.utf8), because: Array("a letter".utf8))
      }
      #expect(try store.isGenuine(code, of: request(by: "bob")) && !store.isGenuine(code, of: request(by: "eve")))
    }
    await store.close()
  }

  @Test(arguments: [
    (["--sub", "ada", "--yes"], "--reason"), (["--sub", "ada", "--reason", "a letter"], "say --yes"),
    (["--sub", "ada", "--reason", "a letter", "--yes", "--on", "consent-revoked"], "--dry-run"),
    (["--sub", "a da", "--reason", "a letter", "--yes"], "--sub"),
    (["--sub", "ada", "--reason", "a letter", "--yes", "--team", "C1B2C3D4E5"], "teams.C1B2C3D4E5"),
    (["--sub", "ada", "--reason", "a letter", "--yes", "--id", "letter-7"], "--id is not of a request"),
    (
      ["--sub", "ada", "--reason", "a letter", "--yes", "--id", "operator-S25cB0PbHs6y97gYYmgydQ"],
      "--id is not of a request"
    ),
  ])
  func asksForNothingThatCannotBeMeant(_ words: [String], _ said: String) async throws {
    let outcome = try await run(words)
    #expect(outcome.end == .exit(2) && outcome.errors.contains(said), "\(outcome.errors)")
    #expect(outcome.output.isEmpty)
  }

  @Test func asksForNothingWithoutTheStoreThatVouchesForIt() async throws {
    let outcome = try await run(["--sub", "ada", "--by", "bob", "--reason", "a letter", "--yes"])
    #expect(outcome.end == .exit(2) && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errors.contains("store.master-key"))
  }

  @Test func saysHowToRepeatWhatIsNotKnownToBeAskedFor() async throws {
    await (try makeStore()).close()
    let outcome = try await run(["--sub", "ada", "--by", "bob", "--reason", "a letter", "--yes"])
    #expect(outcome.end == .exit(3), "\(outcome)")
    let id = try #require(outcome.output.split(whereSeparator: \.isWhitespace).last)
    #expect(outcome.output == "event      \(id)\n")
    #expect(outcome.errors.contains("repeat it with --id \(id)\n"))
  }

  @Test func saysWhichTargetCannotBeAsked() async throws {
    let outcome = try await run(["--dry-run", "--sub", "ada"])
    #expect(outcome.end == .exit(1) && outcome.errors.contains("siwa: shop: misconfigured"))
    #expect(outcome.output.contains("invoices: stays"))
  }

  // MARK: The audit log

  private func search(_ subject: String) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await run(["--verify", "--place", "audit-log", "--sub", "-"], input: subject + "\n")
  }

  @Test func aLogThatNamesNobodyIsSearchedToItsEnd() async throws {
    let none = try await search("ada")
    #expect(none.end == .exit(0) && none.output.contains("  no audit log on this machine  -\n"), "\(none)")
    let log = try SampleLog(in: files.path + "/log")
    try await log.write([300, 70_000], sampleEntry)
    let below = FileManager.default.subpaths(atPath: log.path) ?? []
    let others = below.filter { !$0.hasPrefix("tile/entries/") }.filter {
      var status = stat()
      return unsafe lstat("\(log.path)/\($0)", &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }
    let found = try await search("000768.6166f031167141e695698239959f591a.1521")
    #expect(
      found.end == .exit(0) && found.errors == ""
        && found.output == "audit-log \(log.path)  nothing in 70000 entries and \(others.count) other files  -\n",
      "\(found)")
  }

  /// What must never be there: in an entry that is published, in one at the right edge, in a file beside them.
  @Test func aLogThatNamesSomebodyIsSaidWhere() async throws {
    let log = try SampleLog(in: files.path + "/log")
    try await log.write([700]) {
      [5, 300, 699].contains($0) ? Array("of A1B2C3D4E5/ada.1 \($0)".utf8) : sampleEntry($0)
    }
    let found = try await search("ada.1")
    #expect(found.end == .exit(1), "\(found)")
    let places = [
      "entry 5 in tile/entries/000", "entry 300 in tile/entries/001", "entry 699 in tile/entries/002.p/188",
    ]
    for place in places { #expect(found.output.contains(place), "\(found)") }
    #expect(found.output.hasSuffix("  STAYS for ever: no entry can be taken out of a log\n"), "\(found)")
    let other = try await search("ada.2")
    #expect(other.end == .exit(0), "\(other)")
    // Wherever it lies in a large file: in one piece that is read, or in two.
    for place in [0, (1 << 20) - 2, 3_000_000] {
      let bytes = [UInt8](repeating: UInt8(ascii: "a"), count: place) + Array("ada.2".utf8)
      log.replace("index.sqlite", with: bytes + [UInt8](repeating: 0, count: 9))
      let beside = try await search("ada.2")
      #expect(
        beside.end == .exit(1)
          && beside.output.hasSuffix(
            "  in the clear: bytes in index.sqlite  STAYS until somebody removes these files\n"),
        "\(place): \(beside)")
    }
  }

  @Test func aLogOfWhichEveryEntryNamesSomebodyIsSaidInALine() async throws {
    let log = try SampleLog(in: files.path + "/log")
    try await log.write([1000]) { _ in Array("ada.1".utf8) }
    let found = try await search("ada.1")
    #expect(found.end == .exit(1) && found.output.contains(", and 990 more  STAYS for ever"), "\(found)")
    #expect(found.output.split(separator: ", ").count == 11)
  }

  @Test func aLogThatCannotBeReadIsNotCalledSearched() async throws {
    _ = files.write("log", "no directory")
    let found = try await search("ada")
    #expect(found.end == .exit(3) && found.output.contains("  UNKNOWN Not a directory"), "\(found)")
  }
}
