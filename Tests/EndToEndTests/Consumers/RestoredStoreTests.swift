import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import ConsumerSupport
import Cryptography
import EventLoop
import Foundation
import Kafka
import TestSupport
import Testing

/// Backup, erasure, restore: the steps of docs/account-store.md, on a real broker and with both databases.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct RestoredStoreTests {
  @Test func whoWasErasedSinceTheBackupStaysErased() async throws {
    let files = TemporaryDirectory()
    let (place, backup) = (files.path + "/store/store.sqlite", files.path + "/backup.sqlite")
    try await run(files, ConsumerStage.Form()) { stage throws in
      #expect(try await stage.siwa("store", "backup", backup).end == .exit(0))
    } restoring: { _ throws in
      for name in [place, place + "-wal", place + "-shm"] where FileManager.default.fileExists(atPath: name) {
        try FileManager.default.removeItem(atPath: name)
      }
      try FileManager.default.copyItem(atPath: backup, toPath: place)
    }
  }

  /// The hashing key is replaced after the backup: outcomes bear hashes that the restored store does not know.
  @Test func whoWasErasedUnderALaterHashingKeyStaysErased() async throws {
    let files = TemporaryDirectory()
    let (place, backup) = (files.path + "/store/store.sqlite", files.path + "/backup.sqlite")
    let key = files.path + "/hash-key"
    try await run(files, ConsumerStage.Form()) { stage throws in
      #expect(try await stage.siwa("store", "backup", backup).end == .exit(0))
      #expect(try await stage.siwa("store", "create-key", "--hashing", key).end == .exit(0))
      #expect(try await stage.siwa("store", "rotate-hash-key", key).end == .exit(0))
    } restoring: { stage throws in
      for name in [place, place + "-wal", place + "-shm"] where FileManager.default.fileExists(atPath: name) {
        try FileManager.default.removeItem(atPath: name)
      }
      try FileManager.default.copyItem(atPath: backup, toPath: place)
      let early = try await stage.siwa("store", "reconcile", "--dry-run")
      #expect(early.end == .exit(1) && early.errors.contains("Run `siwa store rotate-hash-key`"), "\(early)")
      #expect(try await stage.siwa("store", "rotate-hash-key", key).end == .exit(0))
    }
  }

  @Test(PostgreSQLServer.isThere)
  func theSameWithTheStoreInPostgreSQL() async throws {
    let server = try await PostgreSQLServer.shared()
    let connection = try await server.makeDatabase()
    let database = String(connection.split(separator: "dbname=").last ?? "")
    var dump = ""
    try await run(TemporaryDirectory(), ConsumerStage.Form(postgreSQL: connection)) { _ throws in
      dump = try await server.dump(database: database)
    } restoring: { _ throws in
      try await server.psql("DROP SCHEMA siwa CASCADE", database: database)
      try await server.psql(dump, database: database)
    }
  }

  private func run(
    _ files: TemporaryDirectory, _ form: ConsumerStage.Form,
    backingUp backUp: @Loop (ConsumerStage) async throws -> Void,
    restoring restore: @Loop (ConsumerStage) async throws -> Void
  ) async throws {
    // Nobody asks Apple here.
    let apple = AppleSide(
      origin: "https://127.0.0.1:9", certificate: "/nowhere", privateKey: "/nowhere",
      key: DeveloperKey(id: "ABC123DEFG", privateKeyPEM: try P256PrivateKey().pem()))
    try await ConsumerStage.run(try await RealBroker(), apple, in: files, form) { stage in
      let producer = try Producer(
        try KafkaConfiguration(properties: [("bootstrap.servers", stage.broker.bootstrapServers)]),
        deadline: .seconds(300), log: { _ in })
      func send(_ id: String, _ kind: AccountEvent.Kind, of person: Person, at number: Int) async throws {
        _ = try await producer.send(try stage.signer.record(of: .sample(id, kind, of: person, at: number)))
      }
      let (ada, bob, cyn) = (Person(named: "ada"), Person(named: "bob"), Person(named: "cyn"))
      let accounts = try [ada, bob, cyn].map { try ConsumerStage.account($0) }
      try stage.shop.welcome([ada, bob, cyn])
      for person in [ada, bob, cyn] {
        try await send("\(person.subject)-mail", .emailEnabled(.sample(person), isPrivate: true), of: person, at: 1)
      }
      try await work(stage)
      try await backUp(stage)

      try await send("ada-deleted", .accountDelete, of: ada, at: 2)
      try await send("cyn-withdrawn", .consentRevoked, of: cyn, at: 2)
      try await work(stage)
      #expect(try stage.shop.customers() == [bob.subject])
      let bobsMail = try await stage.store.relayStates(of: [accounts[1]])
      let erased = try await stage.store.relayStates(of: accounts)
      #expect(erased[1...] == [bobsMail[0], .unknown])

      try await stage.replaceStore { try await restore(stage) }
      let restored = try await stage.store.relayStates(of: accounts)
      #expect(restored.allSatisfy { if case .known = $0 { true } else { false } }, "the backup has brought them back")

      let found = try await search(stage, ada)
      #expect(found.end == .exit(1) && found.output.contains("  STAYS until the account is erased\n"), "\(found)")

      let rehearsal = try await stage.siwa("store", "reconcile", "--dry-run")
      #expect(rehearsal.end == .exit(0), "\(rehearsal)")
      #expect(
        rehearsal.output == Self.report(outcomes: 7, erased: 1, fences: 1, mail: 2, "Nothing was changed"))
      #expect(try await stage.store.relayStates(of: accounts) == restored)
      let done = try await stage.siwa("store", "reconcile")
      #expect(
        done.end == .exit(0)
          && done.output == Self.report(outcomes: 7, erased: 1, fences: 1, mail: 2, "Done"))
      #expect(try await stage.store.relayStates(of: accounts) == erased)
      let again = try await stage.siwa("store", "reconcile")
      #expect(
        again.end == .exit(0)
          && again.output == Self.report(outcomes: 7, erased: 0, fences: 0, mail: 0, "Done"))
      #expect(try await stage.siwa("store", "integrity").end == .exit(0))
      let gone = try await search(stage, ada)
      #expect(gone.end == .exit(0) && gone.output.contains("  names nobody\n"), "\(gone)")

      // The programs read again what the store does not know any more, in groups of other names.
      try await work(stage, group: "restored")
      #expect(try await stage.store.relayStates(of: accounts) == erased)
      #expect(try stage.shop.customers() == [bob.subject])
      let relays = try await TopicContents.read([.emailRelay], stage.broker.bootstrapServers)
      var last: [String: Bool] = [:]
      for record in relays[Topic.emailRelay.name] ?? [] {
        last[String(decoding: record.key ?? [], as: UTF8.self)] = record.value != nil
      }
      #expect(accounts.map { last[String(decoding: $0.key, as: UTF8.self)] } == [false, true, false])
      await producer.close(within: .seconds(10))

      // Another store is left alone.
      stage.environment["SIWA_STORE_SQLITE"] = files.path + "/other.sqlite"
      if form.postgreSQL == nil {
        #expect(try await stage.siwa("store", "begin").end == .exit(0))
        let foreign = try await stage.siwa("store", "reconcile")
        #expect(
          foreign.end == .exit(1) && foreign.errors.contains("outcomes on apple.account-outcomes.v1 is of this store"),
          "\(foreign)")
      }
    }
  }

  /// The relay and the eraser do what is to be done.
  private func work(_ stage: ConsumerStage, group: String? = nil) async throws {
    let consumers: [ConsumerName] = [.emailRelay, .dataEraser]
    var members: [RunningMember] = []
    for consumer in consumers {
      let variable = "SIWA_\(consumer.text.uppercased().replacing("-", with: "_"))_GROUP"
      members.append(try await stage.start(consumer, group.map { [variable: "\(consumer)-\($0)"] } ?? [:]))
    }
    let progress = try GroupProgress(stage.broker.bootstrapServers)
    for consumer in consumers {
      try await until(every: .milliseconds(100)) {
        try await progress.isDone(consumer, in: group.map { "\(consumer)-\($0)" })
      }
    }
    for member in members { #expect(try await member.end() == .exit(0), "\(member.program.errors)") }
    await progress.close()
  }

  /// What the store has of somebody, as `siwa erase --verify` finds it.
  private func search(
    _ stage: ConsumerStage, _ person: Person
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await stage.siwa(
      "erase", "--verify", "--strict", "--place", "account-store", "--team", AppleSide.team, "--sub", person.subject)
  }

  private static func report(outcomes: Int, erased: Int, fences: Int, mail: Int, _ end: String) -> String {
    """
    Outcomes  \(outcomes)
    Erased    \(erased)
    Fences    \(fences)
    Mail      \(mail)
    Tokens    0
    \(end)

    """
  }
}
