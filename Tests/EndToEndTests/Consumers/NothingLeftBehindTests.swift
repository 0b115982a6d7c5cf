import AccountEvents
import AccountServices
import AppleID
import AppleSimulator
import Configuration
import Cryptography
import EventLoop
import Foundation
import Glibc
import HTTPClient
import Kafka
import TestSupport
import Testing

@testable import AccountStore

/// What is left of a person once they are erased: nothing, wherever the programs have written of them.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct NothingLeftBehindTests {
  private nonisolated static let ada = Person(named: "ada")

  @Test func anErasedPersonIsFoundNowhere() async throws {
    try await run(postgreSQL: nil)
  }

  @Test(PostgreSQLServer.isThere) func anErasedPersonIsFoundNowhereInPostgreSQL() async throws {
    try await run(postgreSQL: try await PostgreSQLServer(["wal_recycle=off"]))
  }

  /// Somebody has given the topic partitions, and the tombstone goes to another one than the address.
  @Test func aRecordThatNoTombstoneReachesIsSaidToStay() async throws {
    try await ConsumerStage.run { stage, _ in
      let (topic, key) = (Topic.emailRelay.name, try ConsumerStage.account(Self.ada).key)
      func tombstone(_ partition: Int32) -> KafkaRecord {
        KafkaRecord(topic: topic, partition: partition, key: key, value: nil)
      }
      try await stage.send([
        KafkaRecord(topic: topic, partition: 0, key: key, value: Array(Self.ada.address.utf8))
      ])
      #expect(try await verify(stage, "--place", "topics").output.contains("STAYS until the account is erased"))
      try await stage.send([tombstone(1)])
      let left = try await verify(stage, "--place", "topics")
      #expect(left.end == .exit(1) && left.output.contains("has a tombstone in partition 0, too"), "\(left)")
      try await stage.send([tombstone(0)])
      let gone = try await verify(stage, "--place", "topics")
      #expect(gone.end == .exit(0), "\(gone)")
    }
  }

  private func run(postgreSQL server: PostgreSQLServer?) async throws {
    let files = TemporaryDirectory()
    let form = ConsumerStage.Form(postgreSQL: try await server?.makeDatabase())
    try await ConsumerStage.run(in: files, form) { stage, simulator in
      let token = try await stage.signIn(Self.ada, code: try await simulator.signIn("ada"), at: .now - .seconds(60))
      try await plantAndErase(
        stage, simulator, stage.broker, server, files, canaries: [Self.ada.subject, Self.ada.address, token.text])
    }
  }

  private func plantAndErase(
    _ stage: ConsumerStage, _ simulator: SimulatorProgram, _ broker: RealBroker, _ server: PostgreSQLServer?,
    _ files: TemporaryDirectory, canaries: [String]
  ) async throws {
    let brokers = broker.bootstrapServers
    let progress = try GroupProgress(brokers)
    try stage.shop.welcome([Self.ada])
    let ingress = try await stage.startIngress()
    let url = try ingress.url
    try await simulator.order("team", ["team": AppleSide.team, "audiences": [AppleSide.app], "to": url.text])
    var members: [RunningMember] = []
    for consumer in TopicPlan.consumers { members.append(try await stage.start(consumer)) }
    let log = try await stage.startAuditLog()

    // Events, the state of mail, the spool, quarantine, and what no consumer can read.
    _ = try await simulator.notify(.emailEnabled, "ada", to: url)
    try broker.freeze()
    _ = try await simulator.notify(.emailDisabled, "ada", to: url)
    let spooled = try await ingress.get("/metrics").text.split(separator: "\n").filter { $0.hasPrefix("siwa_spool_") }
    #expect(spooled.contains { $0.hasPrefix("siwa_spool_inserts_total ") && !$0.hasSuffix(" 0") }, "\(spooled)")
    broker.thaw()
    try await until { try await ingress.get("/metrics").text.contains("\nsiwa_spool_records 0\n") }
    try await simulator.order(
      "notify",
      [
        "type": "consent-revoked", "user": "ada", "audience": AppleSide.app, "to": url.text,
        "faults": [Fault.expired.rawValue],
      ])
    try await until { try await ingress.get("/metrics").text.contains("\nsiwa_spool_records 0\n") }
    let account = try ConsumerStage.account(Self.ada)
    let producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), deadline: .seconds(300), log: { _ in })
    _ = try await producer.send(
      KafkaRecord(
        topic: Topic.accountEvents.name, key: account.key, value: Array("no event of \(Self.ada.address)".utf8)))
    await producer.close(within: .seconds(10))
    try await until(every: .milliseconds(100)) {
      for consumer in TopicPlan.consumers where try await !progress.isDone(consumer) { return false }
      return true
    }

    // As long as nobody has erased her, there is much; and none of it is said.
    let before = try await verify(stage)
    #expect(before.end == .exit(1), "\(before)")
    #expect(before.output.contains("account-store  the account, sealed: its name, 1 tokens"), "\(before)")
    #expect(before.output.contains("apple.email-relay.v1  2 records  STAYS until the account is erased"), "\(before)")
    #expect(try Self.auditLogLine(before.output).hasPrefix("nothing in "), "\(before)")
    let former = try await backUp(stage, server, to: "backup-before")
    // From here on the hashing key is being replaced.
    try await beginHashRotation(stage.settings)
    let during = try await verify(stage)
    #expect(Self.withoutCounts(during.output) == Self.withoutCounts(before.output), "\(during)")
    let sealing = try await sealedKey(in: server)
    let asked = try await stage.siwa(
      "erase", "--team", AppleSide.team, "--sub", Self.ada.subject, "--reason", "a letter", "--yes")
    #expect(asked.end == .exit(0), "\(asked)")
    try await until(every: .milliseconds(100)) {
      // The two about mail, the request, and Apple's echo of the token's end. A record may stand on the topic twice.
      let records = try await TopicContents.read([.accountEvents], brokers)[Topic.accountEvents.name] ?? []
      guard Set(records.compactMap { $0.text(of: "ce_id") }).count == 4 else { return false }
      for consumer in TopicPlan.consumers where try await !progress.isDone(consumer) { return false }
      return try stage.shop.customers().isEmpty
    }
    // Her letters wait still.
    let after = try await verify(stage)
    #expect(
      after.end == .exit(1) && after.output.contains("quarantine.v1  1 record, of which 1 wait for a decision: 0/0"))

    let rehearsed = try await stage.siwa("erasures", "close-letters", "--dry-run")
    #expect(rehearsed.output.hasPrefix("would be closed  apple.account-events.quarantine.v1  0/0 "), "\(rehearsed)")
    let closed = try await stage.siwa("erasures", "close-letters", "--by", "cron")
    #expect(closed.end == .exit(1) && closed.output.hasPrefix("closed  apple.account-events.quarantine.v1  0/0 "))
    #expect(closed.output.split(separator: "\n").count == 1 && closed.errors.split(separator: "\n").count == 3)
    for consumer in TopicPlan.consumers {
      #expect(closed.errors.contains("\(consumer).dead-letters.v1: 0/0 stays: "), "what nobody can read: \(closed)")
      let discarded = try await stage.siwa(
        "dead-letters", "discard", "--consumer", "\(consumer)", "--all", "--reason", "the account is erased")
      #expect(discarded.end == .exit(0), "\(discarded)")
    }
    #expect(try await stage.siwa("erasures", "close-letters").end == .exit(0))
    let last = try await verify(stage)
    #expect(last.end == .exit(0) && !last.output.contains("STAYS"), "\(last)")
    let rotated = try await stage.siwa("store", "rotate-hash-key")
    #expect(rotated.end == .exit(0), "\(rotated)")
    let later = try await verify(stage)
    #expect(Self.withoutCounts(later.output) == Self.withoutCounts(last.output), "\(later)")
    #expect(try await verify(stage, "--strict").end == .exit(1), "the topics still have their records")
    let local = try await verify(stage, "--place", "account-store", "--place", "spool", "--strict")
    #expect(local.end == .exit(0), "\(local)")

    // The audit log has all of it, by the hash alone.
    let event = try #require(asked.output.split(separator: "\n").first?.split(separator: " ").last.map(String.init))
    try await until(every: .milliseconds(100)) {
      try await stage.siwa("audit", "explain", event).output.contains("\nMet ")
    }
    let bundle = try await stage.siwa("audit", "bundle", "-o", files.path + "/audit.tar")
    #expect(bundle.end == .exit(0), "\(bundle)")
    let report = try await stage.siwa("audit", "report", "-o", files.path + "/report")
    for name in ["report.html", "report.json"] { #expect(report.output.contains("/report/\(name)\n"), "\(report)") }

    var said = [before, during, after, closed, last, bundle, report].map { $0.output + $0.errors }
    for member in members {
      said.append(try await member.get("/metrics").text)
      #expect(try await member.end() == .exit(0))
      said.append(member.program.output + member.program.errors)
    }
    said.append(try await log.administration.get("/metrics").text)
    #expect(try await log.end() == .exit(0))
    said.append(log.program.output + log.program.errors)
    said.append(try await ingress.get("/metrics").text)
    #expect(try await ingress.end() == .exit(0))
    said.append(ingress.program.output + ingress.program.errors)
    await progress.close()
    let backup = try await backUp(stage, server, to: "backup")
    var places =
      ["store", "spool", "audit-log", "audit.tar", "report"].map { "\(files.path)/\($0)" } + [former, backup]
    if let server {
      // Its data, its WAL, and what it says.
      places.append(server.directory)
      try await expectGivenUp(try #require(sealing), by: server)
    }
    for canary in canaries {
      for text in said { #expect(!text.contains(canary), "in what the programs say") }
      for place in places { #expect(try Self.files(at: place, with: Data(canary.utf8)) == []) }
      try await expectNothing(of: canary, on: brokers)
    }
    try await expectHerInCopiesOfBefore(former, and: backup, stage, server)
    let hashes = stage.store.hashes(of: account).map { Data("\($0)".utf8) }
    for place in ["audit-log", "audit.tar"] {
      #expect(try hashes.contains { try !Self.files(at: "\(files.path)/\(place)", with: $0).isEmpty }, "\(place)")
    }
  }

  // MARK: Copies of the store

  /// Backs the store up as docs/account-store.md says, and returns the file.
  private func backUp(_ stage: ConsumerStage, _ server: PostgreSQLServer?, to name: String) async throws -> String {
    if let server { return stage.files.write(name, try await server.dump(database: Self.database)) }
    let path = "\(stage.files.path)/\(name)"
    #expect(try await stage.siwa("store", "backup", path).end == .exit(0))
    return path
  }

  /// No erasure reaches a copy of before: it has her still, sealed, and one of after has not.
  private func expectHerInCopiesOfBefore(
    _ former: String, and latter: String, _ stage: ConsumerStage, _ server: PostgreSQLServer?
  ) async throws {
    for (copy, end) in [(former, RunningProgram.End.exit(1)), (latter, .exit(0))] {
      var place = ["--set", "store.sqlite=\(copy)"]
      if let server {
        let connection = try await server.makeDatabase()
        let database = try #require(connection.split(separator: "dbname=").last.map(String.init))
        try await server.psql(try String(contentsOfFile: copy, encoding: .utf8), database: database)
        place = ["--set", "store.postgresql=\(stage.files.write("connection", connection))"]
      }
      let found = try await verify(stage, ["--place", "account-store"] + place)
      #expect(found.end == end, "\(found)")
      #expect(found.output.contains("the account, sealed: its name, 1 tokens") == (copy == former), "\(found)")
    }
  }

  // MARK: Bytes

  /// The files at a place that hold these bytes.
  private static func files(at place: String, with bytes: Data) throws -> [String] {
    try #require(FileManager.default.fileExists(atPath: place), "\(place)")
    let below = FileManager.default.subpaths(atPath: place) ?? []
    return try ([place] + below.map { "\(place)/\($0)" }).filter { path in
      var status = stat()
      guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
      return try Data(contentsOf: URL(fileURLWithPath: path)).range(of: bytes) != nil
    }
  }

  private nonisolated static let database = "test_1"

  /// The data key, wrapped, that what the store has of the one account is sealed under: it lies in the table.
  private func sealedKey(in server: PostgreSQLServer?) async throws -> Data? {
    guard let server else { return nil }
    let key = try await server.psql(
      "CHECKPOINT; SELECT encode(data_key, 'base64') FROM siwa.account", database: Self.database)
    let bytes = try #require(Data(base64Encoded: key, options: .ignoreUnknownCharacters))
    #expect(try !Self.files(at: server.directory + "/data/base", with: bytes).isEmpty)
    return bytes
  }

  /// Nothing that was sealed can be opened once the tables are written anew and the WAL of before is removed.
  private func expectGivenUp(_ sealedKey: Data, by server: PostgreSQLServer) async throws {
    try await server.psql("VACUUM FULL; CHECKPOINT", database: Self.database)
    #expect(try Self.files(at: server.directory + "/data/base", with: sealedKey) == [])
    for _ in 0..<2 { try await server.psql("SELECT pg_switch_wal(); CHECKPOINT", database: Self.database) }
    #expect(try Self.files(at: server.directory, with: sealedKey) == [])
  }

  /// Begins to replace the hashing key and moves a row, as somebody does who is killed then.
  private func beginHashRotation(_ settings: StoreSettings) async throws {
    let key = try #require(HashKey(try SecureRandom.bytes(32)))
    switch settings.database {
    case .sqlite(let path):
      let rotation = try SQLiteHashRotation(try SQLiteStoreFile(path, settings.masterKey()), page: 1)
      #expect(try rotation.begin(to: key))
      #expect(try rotation.step() != nil)
    case .postgresql(let connection, _):
      let database = try PostgreSQLStoreDatabase(connection.revealed, connections: 1, statementTimeout: .seconds(300))
      let keys = try await database.read { connection in try await connection.openKeys(with: settings.masterKey()) }
      let rotation = PostgreSQLHashRotation(PostgreSQLKeyedDatabase(database, keys), page: 1)
      #expect(try await rotation.begin(to: key))
      #expect(try await rotation.step() != nil)
      await database.close()
    }
  }

  /// What is there for good: all outcomes, and of compacted topics the last record of each key, a tombstone's key aside.
  private func expectNothing(of canary: String, on brokers: String) async throws {
    let compacted = [Topic.quarantine, .emailRelay, .signingKeys] + TopicPlan.consumers.map { .deadLetters(of: $0) }
    for (topic, records) in try await TopicContents.read(compacted + [.outcomes], brokers) {
      var kept = records
      if topic != Topic.outcomes.name {
        kept = Dictionary(grouping: records, by: \.key).values.compactMap(\.last).filter { $0.value != nil }
      }
      for record in kept {
        let parts = [record.key, record.value] + record.headers.map(\.value)
        #expect(!parts.contains { $0.map { Data($0).range(of: Data(canary.utf8)) != nil } ?? false }, "\(topic)")
        #expect(record.text(of: EventRecord.signatureHeader) == nil, "\(topic)")
      }
    }
    // The others forget by themselves.
    let admin = try Admin(KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), log: { _ in })
    for topic in [Topic.accountEvents] + TopicPlan.consumers.map({ .retries(of: $0) }) {
      let settings = try await admin.settings(of: topic.name, within: .seconds(300))
      #expect(settings["cleanup.policy"] == "delete" && settings["retention.ms"] == "1209600000", "\(topic)")
    }
    await admin.close()
  }

  /// What a search says of the audit log.
  private static func auditLogLine(_ output: String) throws -> Substring {
    let line = try #require(output.split(separator: "\n").first { $0.hasPrefix("audit-log ") }, "\(output)")
    return line.drop { $0 != " " }.dropFirst().drop { $0 != " " }.drop { $0 == " " }
  }

  /// What a search says, but for how much of the audit log there was: that grows by itself.
  private static func withoutCounts(_ output: String) -> [Substring] {
    output.split(separator: "\n").filter { !$0.hasPrefix("audit-log ") || !$0.contains("  nothing in ") }
  }

  private func verify(
    _ stage: ConsumerStage, _ words: String...
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await verify(stage, words)
  }

  private func verify(
    _ stage: ConsumerStage, _ words: [String]
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let arguments = ["erase", "--verify", "--team", AppleSide.team, "--sub", "-"] + words
    return try await RunningProgram.run("siwa", arguments, stage.environment) { program in
      try program.write("\(Self.ada.subject)\n")
      program.endInput()
      return try await program.outcome()
    }
  }
}
