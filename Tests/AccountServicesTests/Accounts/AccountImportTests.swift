import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import Cryptography
import EventLoop
import JSON
import TestSupport
import Testing

/// Sign-ins from before the account store: what a line may say, and what becomes of it.
@Loop @Suite struct AccountImportTests {
  private let files = TemporaryDirectory()
  private nonisolated static let now = Timestamp.sample(1_800_000_000_000)
  private nonisolated static let team = sample(TeamID("A1B2C3D4E5"))
  private nonisolated static let teams = [
    sample(ClientID("com.example.app")): team, sample(ClientID("com.example.web")): team,
  ]

  private nonisolated static func sample<Value>(_ value: Value?) -> Value {
    guard let value else { preconditionFailure("the sample is well-formed") }
    return value
  }

  private nonisolated static func account(_ name: String) -> Account {
    Account(team: team, subject: sample(AppleSubject(name)))
  }

  /// A good line, with some members replaced, removed (nil) or added.
  private nonisolated static func line(_ changes: KeyValuePairs<String, JSONValue?> = [:]) -> [UInt8] {
    var members: [JSONValue.Member] = [
      .init("sub", "ada"), .init("client_id", "com.example.app"), .init("signed_in_at", 1_700_000_000),
      .init("refresh_token", "r1.0.token"),
    ]
    for (name, value) in changes {
      members.removeAll { $0.name == name }
      if let value { members.append(.init(name, value)) }
    }
    return JSONValue.object(members).bytes
  }

  /// The same with one member replaced, removed (nil) or added.
  private nonisolated static func line(_ name: String, _ value: JSONValue?) -> [UInt8] { line([name: value]) }

  private func withStore(_ body: @Loop (WatchedStore) async throws -> Void) async throws {
    let key = try #require(MasterKey(try SecureRandom.bytes(32)))
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", key)
    let store = WatchedStore(try await SQLiteAccountStore.open(files.path + "/store.sqlite", key))
    try await body(store)
    await store.close()
  }

  /// Takes the lines, a page of them at once, and says what was told of which.
  private func take(
    _ pages: [[UInt8]]..., into store: (any AccountStore)?, from first: Int64 = 1
  ) async throws -> (AccountImport.Progress, [Int64: AccountImport.Note]) {
    var (left, notes) = (pages[...], [Int64: AccountImport.Note]())
    let accounts = AccountImport(
      into: store, teams: Self.teams, skipped: first - 1, now: { Self.now }, tell: { notes[$0] = $1 })
    try await accounts.run { left.popFirst() }
    return (accounts.progress, notes)
  }

  // MARK: Lines

  @Test(
    arguments: [
      ([:], 1_700_000_000), (["signed_in_at": "2023-11-14T22:13:20Z"], 1_700_000_000),
      (["signed_in_at": "2023-11-14T23:13:20+01:00"], 1_700_000_000), (["team": "A1B2C3D4E5"], 1_700_000_000),
      (["team": .null], 1_700_000_000), (["signed_in_at": "2023-11-14"], 1_699_920_000), (["signed_in_at": 0], 0),
      (["signed_in_at": 1_800_000_000], 1_800_000_000),
    ] as [(KeyValuePairs<String, JSONValue?>, Int64)])
  nonisolated func aLineIsASignIn(changes: KeyValuePairs<String, JSONValue?>, seconds: Int64) throws {
    let account = try ImportedAccount(reading: Self.line(changes), teams: Self.teams, at: Self.now)
    #expect(account.account == Self.account("ada"))
    #expect(account.signedInAt == Timestamp(seconds: seconds))
    #expect(account.tokens.map(\.value.text) == ["r1.0.token"])
    #expect(account.tokens.map(\.client.text) == ["com.example.app"] && account.tokens.map(\.kind) == [.refresh])
  }

  @Test(arguments: [nil, JSONValue.null])
  nonisolated func aSignInMayHaveNoToken(token: JSONValue?) throws {
    let line = Self.line(["refresh_token": token])
    #expect(try ImportedAccount(reading: line, teams: Self.teams, at: Self.now).tokens == [])
  }

  private nonisolated static let faults: [([UInt8], ImportedAccount.Fault)] = [
    (line("sub", nil), .missing(.subject)), (line("sub", ""), .malformed(.subject)),
    (line("sub", 7), .malformed(.subject)), (line("sub", "a b"), .malformed(.subject)),
    (line("client_id", nil), .missing(.client)), (line("client_id", "a b"), .malformed(.client)),
    (line("client_id", .null), .malformed(.client)), (line("client_id", "com.example.nobody"), .unknownClient),
    (line("team", "Z9Y8X7W6V5"), .wrongTeam), (line("team", 1), .malformed(.team)),
    (line("signed_in_at", nil), .missing(.signedInAt)), (line("signed_in_at", .null), .malformed(.signedInAt)),
    (line("signed_in_at", -1), .malformed(.signedInAt)),
    (line("signed_in_at", "yesterday"), .malformed(.signedInAt)),
    (line("signed_in_at", 1_700_000_000_000), .malformed(.signedInAt)),
    (line("signed_in_at", 1_800_000_001), .notYet), (line("refresh_token", ""), .malformed(.refreshToken)),
    (line("refresh_token", "a b"), .malformed(.refreshToken)),
    (line("refresh_token", 1), .malformed(.refreshToken)),
    (line("refreshToken", "r1"), .unknownMember), (line("sub", ["a": 1]), .malformed(.subject)),
    (Array(#"{"sub":"a","sub":"b"}"#.utf8), .malformedLine), (Array("ada,com.example.app".utf8), .malformedLine),
    (Array("[]".utf8), .malformedLine), (line() + line(), .malformedLine), (Array(line().dropLast()), .malformedLine),
    (Array(#"{"signed_in_at":1.5}"#.utf8), .malformed(.signedInAt)), ([0xff], .malformedLine), ([], .malformedLine),
  ]

  @Test(arguments: faults)
  nonisolated func whatIsNoSignInIsNamed(line: [UInt8], fault: ImportedAccount.Fault) throws {
    #expect(throws: fault) { try ImportedAccount(reading: line, teams: Self.teams, at: Self.now) }
    #expect(!"\(fault)".contains("ada") && !"\(fault)".contains("r1"))
  }

  // MARK: Imports

  @Test func whatWasImportedIsThereAndTheSameAgainChangesNothing() async throws {
    try await withStore { store throws in
      let pages = [
        [Self.line(), Self.line(["client_id": "com.example.web", "refresh_token": "r2"])],
        [Array(" \r".utf8), Self.line(["sub": "bob", "refresh_token": nil]), Self.line(["sub": nil])],
      ]
      for _ in 1...2 {
        let (progress, notes) = try await take(pages[0], pages[1], into: store)
        #expect(progress == .init(lines: 5, accounts: 3, tokens: 2, ended: 0, refused: 1))
        #expect(notes == [5: .refused(.missing(.subject))])
        let tokens = try await store.tokens(of: Self.account("ada"))
        #expect(Set(tokens.map(\.token.value.text)) == ["r1.0.token", "r2"] && tokens.count == 2)
        #expect(tokens.allSatisfy { $0.issuedAt == Timestamp(seconds: 1_700_000_000) })
      }
    }
  }

  @Test func aRehearsalReadsAndWritesNothing() async throws {
    let (progress, notes) = try await take([Self.line(), Self.line(["sub": 1])], into: nil, from: 100)
    #expect(progress == .init(lines: 101, accounts: 1, tokens: 1, ended: 0, refused: 1))
    #expect(notes == [101: .refused(.malformed(.subject))], "lines that were passed over count")
  }

  /// A deletion came before the import did.
  @Test func whoWasErasedSinceStaysErased() async throws {
    try await withStore { store throws in
      let account = Self.account("ada")
      let event = EventReference(
        id: Self.sample(EventID("deletion")), account: account, hash: store.hash(of: account),
        occurredAt: Self.sample(Timestamp(seconds: 1_750_000_000)),
        origin: EventOrigin(topic: "apple.account-events.v1", partition: 0, offset: 0),
        weight: EventWeight(severity: 2, tie: 0, covers: 2), yieldsTo: [.signIn])
      let consumer = Self.sample(ConsumerName("data-eraser"))
      #expect(
        try await store.settle(
          [Settlement(of: event, by: consumer, outcome: "done", detail: "", changes: [.eraseAccount(isFinal: true)])],
          at: Self.now) == [.applied])
      let (progress, notes) = try await take([Self.line()], into: store)
      #expect(progress.ended == 1 && progress.tokens == 0 && notes == [1: .ended])
      #expect(try await store.tokens(of: account) == [])
      // Whoever has come back since is another matter.
      let later = Self.line(["signed_in_at": 1_760_000_000, "refresh_token": "r9"])
      #expect(try await take([later], into: store).0.tokens == 1)
    }
  }

  @Test func afterAFailureItIsSaidWhereToGoOn() async throws {
    try await withStore { store throws in
      let lines = (0..<300).map { Self.line(["sub": .string("person-\($0)"), "refresh_token": .string("r\($0)")]) }
      var left = [Array(lines[..<200]), Array(lines[200...])][...]
      var calls = 0
      store.before = { call throws(AccountStoreError) in
        guard call == .recordSignIn else { return }
        calls += 1
        if calls == 150 { throw AccountStoreError(.unavailable, "the disk is away") }
      }
      let first = AccountImport(into: store, teams: Self.teams, now: { Self.now }, tell: { _, _ in })
      let error = await #expect(throws: AccountStoreError.self) { try await first.run { left.popFirst() } }
      #expect(error?.code == .unavailable)
      #expect(first.nextLine <= 150)
      store.before = { _ in }
      let rest = Array(lines[Int(first.nextLine - 1)...])
      #expect(try await take(rest, into: store, from: first.nextLine).0.lines == 300)
      for number in 0..<300 {
        #expect(try await store.tokens(of: Self.account("person-\(number)")).count == 1)
      }
    }
  }

  // MARK: Lines of a file

  @Test(arguments: [false, true])
  func linesAreReadAsTheyAre(mayLackLastEnd: Bool) throws {
    let long = String(repeating: "a", count: 600_000)
    let path = files.write("lines", "one\n\n\(long)\nlast")
    let file = try ReadDescriptor(path)
    let lines = LineReader(file.number, limit: 700_000, mayLackLastEnd: mayLackLastEnd)
    #expect(try lines.next() == Array("one".utf8))
    #expect(try lines.next() == [])
    #expect(try lines.next()?.count == long.utf8.count)
    if mayLackLastEnd {
      #expect(try lines.next() == Array("last".utf8))
      #expect(try lines.next() == nil)
    } else {
      #expect(throws: LineReader.Fault.cutOff) { try lines.next() }
    }
    let again = try ReadDescriptor(path)
    let short = LineReader(again.number, limit: 1000, mayLackLastEnd: true)
    #expect(try short.next() == Array("one".utf8))
    #expect(try short.next() == [])
    #expect(throws: LineReader.Fault.tooLong) { try short.next() }
  }
}
