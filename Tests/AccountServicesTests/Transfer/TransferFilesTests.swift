import AccountEvents
import AccountStore
import Cryptography
import EventLoop
import Foundation
import Glibc
import TestSupport
import Testing
import TransparencyLog

@testable import AccountServices

/// What the sending team hands over, and what the receiving one believes of it.
@Loop @Suite(.timeLimit(.minutes(30))) struct TransferFilesTests {
  private static let time = VirtualClock.start
  nonisolated private static let isAgeThere = FileManager.default.isExecutableFile(atPath: "/usr/bin/age")

  /// Both teams, with a store each, and a directory between them.
  @Loop
  private final class Handover {
    let files = TemporaryDirectory()
    let sending: TransferRig
    let receiving: TransferPlan
    let received = MemoryTransferStore()
    let signer: NoteSigner
    let age = Age(["PATH": "/usr/bin:/bin"])
    var directory: String { files.path + "/handover" }

    init(_ count: Int) async throws {
      sending = try TransferRig()
      sending.fill(count)
      sending.answer = { $0.number % 10 == 7 ? TransferRig.withdrawn : TransferRig.good($0) }
      #expect(await (try sending.run(rate: 10_000)).run().name == "complete")
      signer = try NoteSigner.generate(name: "example.com/transfer").signer
      receiving = try #require(
        TransferPlan(
          "spring", .receiving, team: TransferRig.theirs, otherTeam: TransferRig.ours, client: ValidationRig.app,
          createdAt: TransferFilesTests.time))
      _ = try received.add(receiving)
    }

    @discardableResult
    func export(encryptedTo recipient: String? = nil) async throws -> TransferManifest {
      try await exportAll(encryptedTo: recipient).manifest
    }

    func exportAll(encryptedTo recipient: String? = nil) async throws -> TransferExport.Outcome {
      let export = TransferExport(
        of: sending.plan, in: sending.store, to: directory, encryptedTo: recipient, by: age)
      return try await export.run(signedBy: signer, at: TransferFilesTests.time) { _, _ in }
    }

    func importAll(
      into plan: TransferPlan? = nil, signedBy key: VerifierKey? = nil, identity: String? = nil
    ) async throws -> TransferImport.Outcome {
      let users = TransferImport(
        into: plan ?? receiving, in: received, from: directory, signedBy: key ?? signer.key, decryptedWith: identity,
        by: age)
      return try await users.run(at: TransferFilesTests.time) { _, _ in }
    }

    /// The same after an import that was killed when all had been added.
    func importTwice() async throws -> TransferImport.Outcome {
      received.before = { call throws(AccountStoreError) in
        if call == "noteImport" { throw AccountStoreError(.unavailable, "killed") }
      }
      #expect(await refusal().contains("killed"))
      received.before = { _ in }
      return try await importAll()
    }

    /// Why the import is refused.
    func refusal(
      into plan: TransferPlan? = nil, signedBy key: VerifierKey? = nil, identity: String? = nil
    ) async -> String {
      do {
        _ = try await importAll(into: plan, signedBy: key, identity: identity)
        return "it is not"
      } catch {
        return "\(error)"
      }
    }

    /// Puts a file of these lines in the place of what was exported, signed.
    func sign(_ lines: String, done: Int64) async throws {
      let bytes = Array(lines.utf8)
      let manifest = TransferManifest(
        of: sending.plan, TransferCensus(), done: done,
        files: [TransferManifest.File(name: "users.jsonl", size: Int64(bytes.count), digest: SHA256.digest(of: bytes))],
        at: TransferFilesTests.time)
      try write(bytes, to: "users.jsonl")
      try write(try await SignedNote.sign(manifest.text, with: signer).bytes, to: "manifest.txt")
    }

    func bytes(_ name: String) throws -> [UInt8] {
      Array(try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(name)")))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
      try Data(bytes).write(to: URL(fileURLWithPath: "\(directory)/\(name)"))
    }

    /// The names in the directory.
    var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: directory).sorted() } }
  }

  @Test func whatIsHandedOverIsTakenOverOnce() async throws {
    let handover = try await Handover(1500)
    let manifest = try await handover.export()
    #expect(manifest.done == 1350 && manifest.waiting == 0)
    #expect(manifest.refused == [.consentWithdrawn: 150])
    #expect(try handover.names == ["manifest.txt", "users.csv", "users.jsonl"])
    for name in try handover.names {
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(handover.directory)/\(name)")
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      let text = String(decoding: try handover.bytes(name), as: UTF8.self)
      #expect(!text.contains("000001.old") && !text.contains(".old"), "no subject")
    }
    let csv = String(decoding: try handover.bytes("users.csv"), as: UTF8.self)
    #expect(csv.hasPrefix("\"key\",\"transfer_sub\"\r\n\"customer-1\",\"001876.r1\"\r\n"))

    let outcome = try await handover.importAll()
    #expect(outcome.new == 1350 && outcome.manifest == manifest)
    let keys = Set(handover.received.users.values.map { "\($0.key) \($0.transferSubject?.text ?? "")" })
    #expect(keys.count == 1350 && keys.contains("customer-1500 001876.r1500") && !keys.contains("customer-7 001876.r7"))
    #expect(await handover.refusal().hasSuffix("it was imported into the plan spring before"))
  }

  @Test(.enabled("needs Debian's package age") { isAgeThere })
  func whatAgeEncryptsWasNeverOnTheDiskInTheClear() async throws {
    let handover = try await Handover(700)
    let keys = try await RunningProgram.finish(path: "/usr/bin/age-keygen", [])
    let identity = handover.files.write("age.key", keys.output)
    let recipient = try #require(keys.output.split(separator: " ").last { $0.hasPrefix("age1") })
    let manifest = try await handover.export(
      encryptedTo: String(recipient.prefix { !$0.isWhitespace }))
    #expect(try handover.names == ["manifest.txt", "users.csv.age", "users.jsonl.age"])
    for name in ["users.csv.age", "users.jsonl.age"] {
      let bytes = try handover.bytes(name)
      #expect(bytes.starts(with: Array("age-encryption.org/v1".utf8)))
      #expect(!String(decoding: bytes, as: UTF8.self).contains("customer-1"))
    }
    #expect(await handover.refusal().contains("--identity"))
    let outcome = try await handover.importAll(identity: identity)
    #expect(outcome.new == 630 && manifest.done == 630)
    let other = try await RunningProgram.finish(path: "/usr/bin/age-keygen", [])
    let next = try await Handover(20)
    _ = try await next.export(encryptedTo: String(recipient.prefix { !$0.isWhitespace }))
    #expect(
      await next.refusal(identity: next.files.write("other.key", other.output)).contains("age does not decrypt it"))
    #expect(next.received.users.isEmpty)
  }

  /// The same users, encrypted, do not protect what lies beside them in the clear.
  @Test(.enabled("needs Debian's package age") { isAgeThere })
  func ofTwoExportsOnlyTheFilesOfTheSecondAreThere() async throws {
    let handover = try await Handover(20)
    let keys = try await RunningProgram.finish(path: "/usr/bin/age-keygen", [])
    let recipient = try #require(keys.output.split(whereSeparator: \.isWhitespace).last { $0.hasPrefix("age1") })
    let (plain, encrypted) = (["users.jsonl", "users.csv"], ["users.jsonl.age", "users.csv.age"])
    #expect(try await handover.exportAll().outdated == [])
    for (name, removed, isEncrypted) in [(encrypted, plain, true), (plain, encrypted, false)] {
      let outcome = try await handover.exportAll(encryptedTo: isEncrypted ? String(recipient) : nil)
      #expect(outcome.outdated == removed.map { "\(handover.directory)/\($0)" })
      #expect(try handover.names == (name + ["manifest.txt"]).sorted())
    }
    #expect(try await handover.exportAll().outdated == [], "the same again replaces them")
    #expect(try await handover.importAll().new == 18)
  }

  /// A key stays as it is: the recipient finds nobody by another one.
  @Test func keysThatASpreadsheetTakesForFormulasAreCounted() async throws {
    let handover = try await Handover(1)
    let odd = ["=HYPERLINK(1)", "+49", "-5", "a=b", "4-7"]
    handover.sending.store.fill(
      odd.enumerated().map { NewTransferUser(key: $1, subject: TransferRig.subject("000001.odd\($0).0001")) })
    #expect(await (try handover.sending.run()).run().name == "complete")
    let outcome = try await handover.exportAll()
    #expect(outcome.manifest.done == 6 && outcome.formulas == 3)
    _ = try await handover.importAll()
    #expect(Set(handover.received.users.values.map(\.key)).isSuperset(of: odd))
  }

  @Test func anExportThatIsBrokenOffLeavesNothingThatCouldBeTakenForOne() async throws {
    let handover = try await Handover(1500)
    _ = try await handover.export()
    var calls = 0
    handover.sending.store.before = { _ throws(AccountStoreError) in
      calls += 1
      if calls == 2 { throw AccountStoreError(.unavailable, "killed") }
    }
    await #expect(throws: AccountStoreError.self) { _ = try await handover.export() }
    #expect(try handover.names == ["users.csv", "users.jsonl"])
    #expect(await handover.refusal().contains("manifest.txt"))
    // What a kill leaves behind, somebody else's included.
    for name in ["users.jsonl.new", "users.csv.age.new"] { try handover.write(Array("half a line".utf8), to: name) }
    handover.sending.store.before = { _ in }
    let outcome = try await handover.exportAll()
    #expect(outcome.leftovers == ["users.jsonl.new", "users.csv.age.new"].map { "\(handover.directory)/\($0)" })
    #expect(try handover.names == ["manifest.txt", "users.csv", "users.jsonl"])
    #expect(try await handover.importAll().new == 1350)
  }

  @Test func whoIsDoneAndDamagedIsCountedAndNotHandedOver() async throws {
    let handover = try await Handover(100)
    for number in [3, 50] as [Int64] { handover.sending.store.damage(number) }
    let outcome = try await handover.exportAll()
    #expect(outcome.damaged == 2 && outcome.manifest.done == 88)
    #expect(outcome.manifest.refused == [.consentWithdrawn: 10, .damaged: 2])
    #expect(try await handover.importAll().new == 88)
    #expect(!handover.received.users.values.contains { $0.key.isEmpty })
  }

  /// Nobody waits for the other end of a pipe, and nothing is read without end.
  @Test func whatIsNoRegularFileIsRefusedInWords() async throws {
    let handover = try await Handover(20)
    try await handover.export()
    let files = FileManager.default
    for name in ["users.jsonl", "manifest.txt"] {
      let (path, bytes) = ("\(handover.directory)/\(name)", try handover.bytes(name))
      for kind in ["pipe", "device", "folder"] {
        try files.removeItem(atPath: path)
        switch kind {
        case "pipe": try #require(unsafe mkfifo(path, 0o600) == 0)
        case "device": try files.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
        default: try files.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
        let refusal = await handover.refusal()
        #expect(refusal == "\(path): it is no regular file, but a pipe, a device or a folder", "\(kind)")
      }
      try files.removeItem(atPath: path)
      try handover.write(bytes, to: name)
    }
    let tooLarge = TransferManifest.File(name: "users.jsonl", size: 17 << 30, digest: SHA256.digest(of: []))
    let fault = #expect(throws: TransferFileFault.self) {
      _ = try TransferSource(tooLarge, in: handover.directory)
    }
    #expect(fault?.reason.contains("larger than 16 GiB") == true)
    #expect(try await handover.importAll().new == 18)
  }

  @Test func anImportThatIsBrokenOffIsCompletedByTheSameAgain() async throws {
    let handover = try await Handover(1500)
    _ = try await handover.export()
    for limit in 1...3 {
      var calls = 0
      handover.received.before = { call throws(AccountStoreError) in
        calls += 1
        if calls == limit { throw AccountStoreError(.unavailable, "killed before \(call)") }
      }
      #expect(await handover.refusal().contains("killed"))
    }
    handover.received.before = { _ in }
    #expect(try await handover.importAll().manifest.done == 1350)
    #expect(handover.received.users.count == 1350)
  }

  @Test func whatIsNotTheirsOrNotWholeIsNotTakenOver() async throws {
    let handover = try await Handover(100)
    _ = try await handover.export()
    let stranger = try NoteSigner.generate(name: "example.com/transfer").signer.key
    #expect(await handover.refusal(signedBy: stranger).contains("it is not signed by example.com/transfer"))
    let plans: [(TeamID, TeamID, ClientID, String)] = [
      (TransferRig.theirs, TransferRig.team("Z9Z9Z9Z9Z9"), ValidationRig.app, "the sending team is A1B2C3D4E5"),
      (TransferRig.team("Z9Z9Z9Z9Z9"), TransferRig.ours, ValidationRig.app, "the recipient is F1B2C3D4E5"),
      (TransferRig.theirs, TransferRig.ours, ValidationRig.web, "the app is com.example.app"),
    ]
    for (team, other, client, words) in plans {
      let plan = try #require(
        TransferPlan("other", .receiving, team: team, otherTeam: other, client: client, createdAt: Self.time))
      #expect(await handover.refusal(into: plan).contains(words))
    }
    let (manifest, users) = (try handover.bytes("manifest.txt"), try handover.bytes("users.jsonl"))
    var changes: [(name: String, bytes: [UInt8])] = [
      ("users.jsonl", users + users), ("users.jsonl", Array(users.dropLast())), ("users.jsonl", []),
      ("manifest.txt", Array(String(decoding: manifest, as: UTF8.self).replacing("done 90", with: "done 91").utf8)),
      ("manifest.txt", Array(manifest.dropLast(9))), ("manifest.txt", []),
      ("manifest.txt", [UInt8](repeating: 0x41, count: TransferManifest.longest + 1)),
    ]
    var other = users
    other[20] ^= 1
    changes.append(("users.jsonl", other))
    for change in changes {
      try handover.write(change.bytes, to: change.name)
      let refusal = await handover.refusal()
      #expect(refusal.contains("\(handover.directory)/\(change.name)") && handover.received.users.isEmpty, "\(refusal)")
      #expect(!refusal.contains("001876") && !refusal.contains("customer"), "\(refusal)")
      try handover.write(manifest, to: "manifest.txt")
      try handover.write(users, to: "users.jsonl")
    }
    #expect(try await handover.importAll().new == 90)
  }

  /// The sending team signs, and may be wrong all the same.
  @Test func aSignedFileIsReadAsStrictly() async throws {
    let line = #"{"key":"a","transfer_sub":"001876.r1"}"#
    let cases: [(lines: String, done: Int64, words: String)] = [
      ("\(line)\n", 2, "it holds 1 users, and 2 by its manifest"), (line, 1, "line 1: its end is missing"),
      ("\(line)\n{}\n", 2, "line 2: not one JSON object"),
      ("\(String(repeating: " ", count: 600_000))\n", 1, "line 1: longer than 4096 bytes"),
      (#"{"key":"a","transfer_sub":"r 1"}"# + "\n", 1, "transfer_sub: expected"),
    ]
    for (lines, done, words) in cases {
      let handover = try await Handover(1)
      _ = try await handover.export()
      try await handover.sign(lines, done: done)
      let refusal = await handover.refusal()
      #expect(refusal.contains(words) && handover.received.users.isEmpty, "\(refusal)")
    }
  }

  private func line(_ key: String, _ number: Int) -> String {
    "{\"key\":\"\(key)\",\"transfer_sub\":\"001876.r\(number)\"}\n"
  }

  /// The first key stays, and whoever has another one is told of, as often as the import is begun anew.
  @Test func aSecondKeyOfSomebodyIsToldByItsLine() async throws {
    let handover = try await Handover(1)
    _ = try await handover.export()
    let lines = [line("a", 1), line("b", 2), line("a", 1), line("c", 1)] + (1...600).map { line("d\($0)", 2) }
    try await handover.sign(lines.joined(), done: 604)
    let second = try await handover.importTwice().faults
    #expect(second.second == 601 && second.shared == 0 && second.first.count == KeyFaults.most)
    #expect(second.first.prefix(2).map(\.number) == [4, 5] && second.first[0].known == "a")
    #expect(second.first[0].description == "line 4: key c: the plan has the same person under the key a")
    #expect(Set(handover.received.users.values.map(\.key)) == ["a", "b"])
    // In a file that comes later, too.
    try await handover.sign(line("b", 2) + line("e", 1), done: 2)
    let later = try await handover.importAll()
    #expect(later.new == 0 && later.faults.second == 1 && later.faults.first.first?.number == 2)
  }

  /// The first one stays. Who comes under their key is not taken, and is told of by the line; the next file brings them.
  @Test func aKeyOfTwoPeopleIsToldByItsLine() async throws {
    let handover = try await Handover(1)
    _ = try await handover.export()
    let lines =
      [line("a", 1), line("a", 2), line("b", 1), line("a", 1)] + (3...602).map { line("c\($0)", $0) } + [
        line("c3", 603)
      ]
    try await handover.sign(lines.joined(), done: 605)
    let faults = try await handover.importTwice().faults
    #expect(faults.shared == 2 && faults.second == 1, "\(faults)")
    #expect(
      faults.first.map(\.description) == [
        "line 2: key a: the plan has another person under this key",
        "line 3: key b: the plan has the same person under the key a",
        "line 605: key c3: the plan has another person under this key",
      ])
    #expect(handover.received.users.count == 601)
    try await handover.sign(line("c3", 604) + line("d", 603) + line("e", 2), done: 3)
    let later = try await handover.importAll()
    #expect(later.new == 2 && later.faults.shared == 1 && later.faults.first.first?.number == 1)
    let keys = handover.received.users.values.map(\.key)
    #expect(keys.count == 603 && Set(keys).count == 603)
  }

  /// Another process takes somebody into the same plan, after the keys were read.
  @Test func aKeyIsOnePersonsThoughTwoProcessesTakeUsersIn() async throws {
    let handover = try await Handover(1)
    var intake = TransferIntake(into: handover.receiving, in: handover.received)
    func user(_ key: String, _ number: Int) -> NewTransferUser {
      NewTransferUser(key: key, transferSubject: TransferRig.identifier("001876.r\(number)"))
    }
    for page in 1...3 {
      handover.received.before = { call throws(AccountStoreError) in
        guard call == "add" else { return }
        handover.received.before = { _ in }
        _ = try handover.received.add([user("key-\(page)", page)], to: handover.receiving, knowing: nil)
      }
      try await intake.add([(1, user("key-\(page)", page + 10)), (2, user("other-\(page)", page + 20))])
    }
    #expect(intake.new == 3 && intake.faults.shared == 3 && intake.faults.second == 0, "\(intake.faults)")
    let keys = handover.received.users.values.map(\.key)
    #expect(keys.count == 6 && Set(keys).count == 6)
  }

  @Test func aFileThatIsBeingWrittenIsNoLeftover() throws {
    let (files, age) = (TemporaryDirectory(), Age([:]))
    let path = files.path + "/results.jsonl"
    let first = try TransferDraft(path, by: age)
    #expect {
      _ = try TransferDraft(path, by: age)
    } throws: { "\($0)".contains("another process is writing it") }
    try first.write([1, 2, 3])
    #expect(try first.finish().size == 3)
    try first.publish()
    #expect(try TransferDraft(path, by: age).leftover == nil)
  }

  @Test func aFolderIsExportedToByOneProcessAtATime() async throws {
    let handover = try await Handover(10)
    _ = try await handover.export()
    let before = try handover.names
    let other = unsafe open(handover.directory, O_RDONLY | O_DIRECTORY)
    #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
    await #expect {
      _ = try await handover.export()
    } throws: { "\($0)".contains("another process exports to it") }
    #expect(try handover.names == before)
    flock(other, LOCK_UN)
    close(other)
    _ = try await handover.export()
  }

  @Test func ofTwoPlansOfOneTransferTheFirstTakesTheUsers() async throws {
    let handover = try await Handover(10)
    _ = try await handover.export()
    let second = try #require(
      TransferPlan(
        "autumn", .receiving, team: TransferRig.theirs, otherTeam: TransferRig.ours, client: ValidationRig.app,
        createdAt: Self.time + .seconds(1)))
    #expect(try handover.received.add(second) == nil)
    #expect(await handover.refusal(into: second).contains("the plan spring is of the same transfer"))
    #expect(handover.received.users.isEmpty)
    #expect(try await handover.importAll().new == 9)
  }

  // MARK: Texts

  @Test func aManifestIsReadAsItIsWritten() throws {
    let rig = try TransferRig()
    var census = TransferCensus()
    (census.waiting, census.done, census.refused) = (3, 90, [.consentWithdrawn: 7, .uselessAnswer: 1, .damaged: 0])
    let digest = SHA256.digest(of: [1])
    let files = ["users.jsonl", "users.csv"].map { TransferManifest.File(name: $0, size: 4, digest: digest) }
    let manifest = TransferManifest(of: rig.plan, census, done: 90, files: files, at: Self.time)
    #expect(try TransferManifest(manifest.text) == manifest)
    let text = String(decoding: manifest.text, as: UTF8.self)
    #expect(text.contains("refused consent-withdrawn 7\nrefused useless-answer 1\nfile users.csv 4 "))

    let changes: [(String, String)] = [
      ("siwa-transfer/v1", "siwa-transfer/v2"), ("plan summer", "plan Summer"), ("sender A1B2C3D4E5", "sender a1b2"),
      ("done 90", "done 090"), ("done 90", "done -1"), ("done 90", "done 9999999999999"), ("waiting 3\n", ""),
      ("waiting 3", "waiting 3\nwaiting 3"), ("consent-withdrawn", "no-reason"),
      ("useless-answer", "consent-withdrawn"),
      ("file users.csv", "file ../users.csv"), ("file users.csv", "file .users"),
      ("file users.csv", "file users.jsonl"),
      ("file users.csv 4", "file users.csv 4 4"), ("exported ", "exported  "), ("client com", "client  com"),
    ]
    for (old, new) in changes {
      let changed = text.replacing(old, with: new, maxReplacements: 1)
      #expect(changed != text)
      #expect(throws: TransferManifest.Fault.self, "\(new)") { _ = try TransferManifest(Array(changed.utf8)) }
    }
    // What ends behind the first of the files is a manifest, too: which one it is the signature says.
    let ends = [manifest.text.count, text.utf8.count - "file users.jsonl 4 \(digest)\n".utf8.count]
    for cut in 0..<manifest.text.count where !ends.contains(cut) {
      #expect(throws: TransferManifest.Fault.self) { _ = try TransferManifest(Array(manifest.text[..<cut])) }
    }
    #expect(throws: TransferManifest.Fault.self) { _ = try TransferManifest(manifest.text + [0x0a]) }
  }

  @Test func aLineHasAKeyAndAPersonAndNothingElse() throws {
    let user = try TransferLine.brought(Array(#"{"sub":"000001.a.0001","key":"47\u0031 ü"}"#.utf8))
    #expect(user == NewTransferUser(key: "471 ü", subject: TransferRig.subject("000001.a.0001")))
    let faults: [(String, TransferLine.Fault)] = [
      ("", .malformed), ("[]", .malformed), (#"{"key":"a"}"#, .malformed), (#"{"key":"a","sub":7}"#, .malformed),
      (#"{"key":"a","sub":"b","email":"c"}"#, .malformed), (#"{"key":"a","key":"a","sub":"b"}"#, .malformed),
      (#"{"key":"a","transfer_sub":"b"}"#, .malformed), (#"{"key":"","sub":"b"}"#, .key),
      (#"{"key":"a\u000a","sub":"b"}"#, .key), (#"{"key":"a","sub":""}"#, .subject),
      (#"{"key":"a","sub":"b c"}"#, .subject),
      ("{\"key\":\"\(String(repeating: "a", count: 256))\",\"sub\":\"b\"}", .key),
      (#"{"key":"user of b","sub":"b"}"#, .personal), (#"{"key":"a@example.com","sub":"b"}"#, .personal),
    ]
    for (line, fault) in faults {
      #expect(throws: fault, "\(line)") { _ = try TransferLine.brought(Array(line.utf8)) }
    }
  }

  /// It may be somebody else's than the line's.
  @Test func aKeyOfTheFormOfASubjectIsNone() throws {
    let person = "0123456789abcdef0123456789ABCDEF"
    let subjects = ["000768.\(person).1521", "user:000768.\(person).1521", "0.\(person).1", "a.1.\(person).2.b"]
    let others = [person, "000768.\(person)", "\(person).1521", "000768.\(person)0.1521", "a.\(person).1521", "1.2.3"]
    for (keys, isRefused) in [(subjects, true), (others, false)] {
      for key in keys {
        for (name, read) in [("sub", TransferLine.brought), ("transfer_sub", TransferLine.received)] {
          let line = Array("{\"key\":\"\(key)\",\"\(name)\":\"z\"}".utf8)
          if isRefused {
            #expect(throws: TransferLine.Fault.personal, "\(key)") { _ = try read(line) }
          } else {
            #expect(try read(line).key == key)
          }
        }
      }
    }
  }

  @Test func aRowOfCSVEndsNeitherEarlyNorLate() {
    let row = TransferLine.csv("a \"b\", c", TransferRig.identifier("001876.r\"1"))
    #expect(String(decoding: row, as: UTF8.self) == "\"a \"\"b\"\", c\",\"001876.r\"\"1\"\r\n")
  }

  @Test func theWindowSaysWhatIsLeftAndWhatThenEnds() throws {
    var plan = try TransferRig(accepted: nil).plan
    let closing = Self.time + TransferPlan.window
    #expect(TransferWindow(plan).words(at: Self.time).contains("siwa migrate accept summer DATE"))
    plan.acceptedAt = Self.time
    let window = TransferWindow(plan)
    let words = window.words(at: Self.time + .seconds(3600))
    #expect(words.hasPrefix("59 days 23 hours left, until \(closing): then Apple neither gives identifiers"))
    #expect(window.words(at: closing - .seconds(90_000)).hasPrefix("1 day 1 hour left"))
    #expect(window.words(at: closing).hasPrefix("over since \(closing)"))
    #expect(window.words(at: Self.time - .seconds(1)).hasPrefix("begins"))
    #expect(window.suffices(for: 86_400, rate: 1, at: closing - .seconds(86_400)))
    #expect(!window.suffices(for: 86_401, rate: 1, at: closing - .seconds(86_400)))
  }
}
