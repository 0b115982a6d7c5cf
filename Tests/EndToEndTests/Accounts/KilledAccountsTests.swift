import AccountEvents
import AccountStore
import AppleSimulator
import EventLoop
import Foundation
import Glibc
import HTTPServer
import SQLite
import TestSupport
import Testing

/// `siwa-accounts` killed between two steps of a sign-in: the person is signed in, or whoever asks is told to begin again,
/// and no token stays good that nobody knows.
@Loop @Suite(.timeLimit(.minutes(30))) struct KilledAccountsTests {
  /// Where the store is.
  enum Database: String, CaseIterable {
    case sqlite, postgresql

    static var present: [Database] { PostgreSQLServer.programs == nil ? [.sqlite] : allCases }
  }

  private let ada = Person(named: "Ada")

  @Test(arguments: Database.present)
  func beforeAppleIsAskedItHasThePersonBeginAgain(_ database: Database) async throws {
    try await run(database) { stage, door, faults, body in
      try await killed(stage, door, faults, body, keeping: .question) { _ throws in
        // It is noted, and Apple knows of nothing.
        #expect(try await stage.unfinished() == 1)
        #expect(!stage.apple.isAuthorized(ada, for: AccountsStage.app))
      }
      #expect(!stage.apple.isAuthorized(ada, for: AccountsStage.app))
      try await beginsAgain(stage, door, body)
      try await isLookedAfter(stage, faults)
    }
  }

  @Test(arguments: Database.present)
  func afterApplesAnswerAndBeforeTheCommitItHasThePersonBeginAgain(_ database: Database) async throws {
    try await run(database) { stage, door, faults, body in
      try await killed(stage, door, faults, body, keeping: .answer) { running in
        let lock = try await StoreLock(stage, database)
        door.go.fire()
        try await lock.untilWaitedFor(by: running)
        await running.program.kill()
        try await lock.release()
      }
      #expect(try await stage.stored(ada).isEmpty)
      #expect(stage.apple.isAuthorized(ada, for: AccountsStage.app), "nobody knows its token")
      try await beginsAgain(stage, door, body)
      try await isLookedAfter(stage, faults)
    }
  }

  /// Who never comes again is a case for the operator, and within a day.
  @Test(arguments: Database.present)
  func aTokenThatNobodyKnowsIsSaidWithinADay(_ database: Database) async throws {
    try await run(database) { stage, door, faults, body in
      try await killed(stage, door, faults, body, keeping: .answer) { _ in
        #expect(stage.apple.isAuthorized(ada, for: AccountsStage.app))
      }
      faults.clockOffset = .seconds(22 * 3600)
      try await stage.accounts(faults.environment) { running in
        _ = try await running.administration.get("/metrics")
        #expect(try await stage.unfinished() == 1)
      }
      faults.clockOffset = .seconds(23 * 3600 + 60)
      try await stage.accounts(faults.environment) { running in
        try await until {
          try await running.administration.metric("siwa_accounts_exchanges_unresolved_total") == 1
        }
        #expect(running.program.errors.contains("nobody knows whether Apple granted a token"))
        // It is said before it is written.
        try await until { try await stage.unfinished() == 0 }
      }
    }
  }

  @Test(arguments: Database.present)
  func afterTheCommitAndBeforeTheAnswerThePersonIsSignedIn(_ database: Database) async throws {
    try await run(database) { stage, door, faults, body in
      try await killed(stage, door, faults, body, keeping: .answer) { running in
        faults.silentPort = running.address.port
        door.go.fire()
        try await until { faults.isSilent }
        #expect(try await stage.stored(ada).count == 1)
        await running.program.kill()
        faults.silentPort = nil
      }
      let asked = stage.apple.tokensAsked
      try await stage.accounts { running in
        let again = try await stage.signIn(running, body, key: "one")
        #expect(again.status == 200 && again.text.contains(#""isNew":true"#), "\(again.text)")
        #expect(try await stage.signIn(running, body, key: "two").status == 409)
      }
      #expect(stage.apple.tokensAsked == asked && door.asked == 1)
      #expect(try await stage.unfinished() == 0)
      try await isAllHeld(stage)
    }
  }

  // MARK: Parts

  private func run(
    _ database: Database,
    _ body: @Loop (AccountsStage, AppleDoor, PreloadedFaults, _ request: String) async throws -> Void
  ) async throws {
    let connection = database == .postgresql ? try await PostgreSQLServer.shared().makeDatabase() : nil
    try await AccountsStage.run(postgreSQL: connection) { stage in
      let token = try await stage.identityToken(of: ada)
      let faults = try await PreloadedFaults(files: stage.files, folder: stage.files.path + "/store")
      try await AppleDoor.run(stage) { door in
        try await body(stage, door, faults, try stage.request(ada, token: token))
      }
    }
  }

  /// Has the program sign the person in, up to where Apple's door holds it; then `rest` goes on, and it is killed.
  private func killed(
    _ stage: AccountsStage, _ door: AppleDoor, _ faults: PreloadedFaults, _ body: String, keeping kept: AppleDoor.Kept,
    after rest: @Loop (RunningAccounts) async throws -> Void
  ) async throws {
    door.kept = kept
    try await stage.accounts(faults.environment.merging(["SIWA_APPLE_TOKEN": door.address]) { $1 }) { running in
      try await withThrowingTaskGroup { group in
        group.addTask(executorPreference: Loop.executor) {
          do {
            let answer = try await stage.signIn(running, body, key: "one")
            // Who waits for a store in vain is told so, and has to ask again.
            #expect(answer.status == 503)
          } catch { return }  // nobody answers any more
        }
        await door.isAsked.wait()
        try await rest(running)
        await running.program.kill()
        door.close()
        try await group.waitForAll()
      }
    }
  }

  /// The code is not sent twice, and with a new one the person is signed in.
  private func beginsAgain(_ stage: AccountsStage, _ door: AppleDoor, _ body: String) async throws {
    try await stage.accounts { running in
      let asked = stage.apple.tokensAsked
      for key in ["one", "two"] {
        let again = try await stage.signIn(running, body, key: key)
        #expect(again.status == 409 && again.text.contains("begin-again"), "\(again.text)")
      }
      #expect(stage.apple.tokensAsked == asked)
      #expect(try await stage.stored(ada).isEmpty)
      let identity = try #require(try body.object["identityToken"] as? String)
      let anew = try await stage.signIn(running, try stage.request(ada, token: identity), key: "three")
      #expect(anew.status == 200 && anew.text.contains(#""isNew":true"#), "\(anew.text)")
      #expect(try await stage.stored(ada).count == 1)
    }
  }

  /// What was broken off is covered by the token that is held: whoever ends that one ends all.
  private func isLookedAfter(_ stage: AccountsStage, _ faults: PreloadedFaults) async throws {
    #expect(try await stage.unfinished() == 1)
    faults.clockOffset = .seconds(22 * 3600)
    try await stage.accounts(faults.environment) { running in
      try await until { try await stage.unfinished() == 0 }
      #expect(running.program.errors.contains("an exchange that was broken off is covered by a token that is held"))
      #expect(try await running.administration.metric("siwa_accounts_exchanges_unresolved_total") == 0)
    }
    try await isAllHeld(stage)
  }

  private func isAllHeld(_ stage: AccountsStage) async throws {
    let held = try await stage.stored(ada)
    #expect(held.count == 1 && stage.apple.isAuthorized(ada, for: AccountsStage.app))
    for token in held { try await stage.revoke(token) }
    #expect(!stage.apple.isAuthorized(ada, for: AccountsStage.app))
  }
}

/// Between the program and Apple's token endpoint: keeps a question, or its answer, for as long as a test wants.
@Loop
private final class AppleDoor {
  enum Kept { case nothing, question, answer }

  var kept = Kept.nothing
  /// Fired where something is kept.
  let isAsked = Signal()
  /// Lets it go.
  let go = Signal()
  private(set) var asked = 0
  private(set) var address = ""
  private var isClosed = false

  static func run(_ stage: AccountsStage, _ body: @Loop (AppleDoor) async throws -> Void) async throws {
    let door = AppleDoor()
    let server = try HTTPServer(.plainOnLoopback) { request in await door.answer(request, stage) }
    door.address = "http://\(server.address)/auth/token"
    try await withThrowingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { await server.run() }
      defer {
        door.close()
        group.cancelAll()
      }
      try await body(door)
    }
  }

  /// Keeps nothing any more, and lets no question through that it has kept.
  func close() {
    isClosed = true
    go.fire()
  }

  private func answer(_ request: HTTPRequest, _ stage: AccountsStage) async -> HTTPResponse {
    guard case .complete = await request.readBody(upTo: 65_536) else { return HTTPResponse(status: 400) }
    let body = request.withBody { body in unsafe body.withUnsafeBytes { unsafe [UInt8]($0) } }
    asked += 1
    if kept == .question {
      isAsked.fire()
      await go.wait()
      if isClosed { return HTTPResponse(status: 503) }
    }
    do {
      let answer = try await stage.forward(
        body, to: stage.tokenURL, [("Content-Type", request.header("Content-Type") ?? "")])
      if kept == .answer {
        isAsked.fire()
        await go.wait()
      }
      return answer
    } catch {
      return .text("\(error)\n", status: 502)
    }
  }
}

/// A lock of the store's database, behind which a sign-in cannot be kept.
@Loop
private final class StoreLock {
  private let server: PostgreSQLServer?
  private let sqlite: Database?
  private let postgresql: RunningProgram?
  private let database: String

  init(_ stage: AccountsStage, _ kind: KilledAccountsTests.Database) async throws {
    switch kind {
    case .sqlite:
      (server, postgresql, database) = (nil, nil, "")
      let file = try Database(
        stage.files.path + "/store.sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
      try file.execute("BEGIN IMMEDIATE")
      sqlite = file
    case .postgresql:
      sqlite = nil
      let shared = try await PostgreSQLServer.shared()
      server = shared
      let connection = try String(contentsOfFile: stage.files.path + "/postgresql", encoding: .utf8)
      database = String(connection.split(separator: "dbname=").last ?? "")
      let client = try RunningProgram(
        (PostgreSQLServer.programs ?? "") + "/psql",
        ["--no-psqlrc", "--quiet", "--tuples-only", "--set=ON_ERROR_STOP=1", connection], endsWithItsInput: true)
      try client.write("BEGIN; LOCK TABLE siwa.token IN SHARE MODE; SELECT 'is locked';\n")
      _ = try await client.outputLine(with: "is locked")
      postgresql = client
    }
  }

  /// Waits until the program waits for it with a sign-in in its hands.
  func untilWaitedFor(by running: RunningAccounts) async throws {
    guard let server else {
      // SQLite tells nobody who waits, but gives up in time.
      _ = try await running.program.line(with: "a sign-in could not be kept, and is offered to the store again")
      return
    }
    try await until(every: .milliseconds(100)) {
      let waiting = try await server.psql(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'siwa.token'::regclass", database: database)
      return waiting == "1"
    }
  }

  func release() async throws {
    try sqlite?.execute("ROLLBACK")
    postgresql?.endInput()
    _ = try await postgresql?.untilEnd()
  }
}

extension AccountsStage {
  /// How many exchanges there are of which nothing came.
  fileprivate func unfinished() async throws -> Int {
    let store = try await settings.open()
    let found = try await store.unfinishedExchanges(before: Timestamp.now + .seconds(86_400), limit: 10)
    await store.close()
    return found.count
  }
}
