import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import Configuration
import Cryptography
import EventLoop
import Foundation
import Glibc
import HTTPClient
import Synchronization
import TestSupport
import Testing

/// A clock that is as far ahead of the machine's as it was turned.
private final class TurnedClock: Sendable {
  private let ahead = Mutex(Duration.zero)
  var now: Timestamp { Timestamp.now + ahead.withLock { $0 } }
  func turn(by duration: Duration) { ahead.withLock { $0 += duration } }
}

/// Two teams with a configuration and a store each, and a simulated Apple between whom an app is transferred.
@Loop
final class MigrationStage {
  typealias End = (end: RunningProgram.End, output: String, errors: String)

  nonisolated static let (sender, recipient, app) = ("A1B2C3D4E5", "F6G7H8J9K0", "com.example.app")

  private static let otherApp = "com.example.other"

  let apple: SimulatedApple
  let files = TemporaryDirectory()
  /// What time it is for Apple.
  private let clock: TurnedClock
  /// Has the programs believe that it is as late; nil where nobody turns a clock.
  private var faults: PreloadedFaults?
  /// All that the programs have said so far.
  private(set) var said = ""
  private let server: SimulatedAppleServer
  private var paths: [TransferPlan.Side: String] = [:]
  private var keys: [String: DeveloperKey] = [:]
  private var settings: [TransferPlan.Side: StoreSettings] = [:]

  /// Where the app is not moved yet, the recipient has another one.
  static func run(
    isPostgreSQL: Bool = false, isAppMoved: Bool = true, _ body: @Loop (MigrationStage) async throws -> Void
  ) async throws {
    let stage = try MigrationStage()
    try await withThrowingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [server = stage.server] in await server.run() }
      defer { group.cancelAll() }
      for side in TransferPlan.Side.allCases { try await stage.configure(side, isPostgreSQL, isAppMoved) }
      try await body(stage)
    }
  }

  private init() throws {
    let clock = TurnedClock()
    self.clock = clock
    apple = SimulatedApple(
      ring: Stage.ring, issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { clock.now })
    server = try SimulatedAppleServer(apple, port: 0, tls: nil)
    keys[Self.sender] = try apple.enroll(team: Self.sender, clients: [Self.app])
    keys[Self.recipient] = try apple.enroll(team: Self.recipient, clients: [])
    for (team, key) in keys { _ = files.write("\(team).p8", key.privateKeyPEM) }
    apple.transfer(Self.app, from: Self.sender, to: Self.recipient, acceptedAt: nil)
    apple.populate(Self.app)
  }

  private func configure(_ side: TransferPlan.Side, _ isPostgreSQL: Bool, _ isAppMoved: Bool) async throws {
    let team = side == .sending ? Self.sender : Self.recipient
    let masterKey = files.write("\(side.rawValue)-master-key", try MasterKey.newText())
    let database = isPostgreSQL ? try await PostgreSQLServer.shared().makeDatabase() : nil
    let place = database.map { "postgresql: \(files.write("\(side.rawValue)-database", $0))" }
    let app = side == .sending || isAppMoved ? Self.app : Self.otherApp
    paths[side] = files.write(
      "\(side.rawValue).yaml",
      """
      teams:
        \(team): { audiences: [\(app)], key-id: \(try #require(keys[team]).id), private-key: \(team).p8 }
      apple: { token: "\(server.tokenURL)", migration: "\(server.migrationURL)", deadline: 60s }
      store: { \(place ?? "sqlite: \(side.rawValue).sqlite"), master-key: \(masterKey) }
      """)
    settings[side] = StoreSettings(
      database: database.map { .postgresql(Secret($0), connections: 2) }
        ?? .sqlite(path: files.path + "/\(side.rawValue).sqlite"), masterKeyFile: masterKey)
    let migrated = try await siwa(side, "store", "begin")
    try #require(migrated.end == .exit(0), "\(migrated)")
  }

  /// The recipient's operator moves the app to the recipient's team, in the configuration.
  func moveApp() throws {
    _ = files.write("receiving.yaml", try file("receiving.yaml").replacing(Self.otherApp, with: Self.app))
  }

  /// The recipient accepts the transfer.
  func accept(daysAgo days: Int64 = 0) {
    apple.transfer(
      Self.app, from: Self.sender, to: Self.recipient, acceptedAt: .now - .seconds(days * 86_400 + 60))
  }

  /// Has programs that are started from now on believe the time that `turn` makes.
  func makeClocksTurnable() async throws { faults = try await PreloadedFaults(files: files, folder: files.path) }

  /// So much time passes at once, for Apple and then for the programs.
  func turn(by duration: Duration) {
    clock.turn(by: duration)
    faults?.clockOffset += duration
  }

  /// Somebody who uses the app.
  nonisolated static func person(_ number: Int) -> Person { Person(named: "person \(number)") }

  /// The lines that bring so many people.
  nonisolated static func lines(_ numbers: ClosedRange<Int>) -> String {
    numbers.map { "{\"key\":\"customer-\($0)\",\"sub\":\"\(person($0).subject)\"}\n" }.joined()
  }

  // MARK: The program

  /// Runs the operator's program of one side to its end.
  func siwa(_ side: TransferPlan.Side, _ words: String..., input: String = "") async throws -> End {
    try await run(side, words) { program in
      try program.write(input)
      program.endInput()
      _ = try await program.untilEnd()
    }
  }

  /// Runs the operator's program of one side, as `body` has it, and returns how it has ended.
  func run(
    _ side: TransferPlan.Side, _ words: [String], _ more: [String: String] = [:],
    _ body: @Loop (RunningProgram) async throws -> Void
  ) async throws -> End {
    var environment = (faults?.environment ?? [:]).merging(more) { $1 }
    environment["SIWA_CONFIG"] = paths[side] ?? ""
    return try await RunningProgram.run("siwa", words, environment) { program in
      try await body(program)
      let outcome = try await program.outcome()
      said += program.output + program.errors
      return outcome
    }
  }

  /// Runs a line of a shell in a side's folder, with our programs on its path, and returns how it has ended.
  func sh(_ line: String, _ side: TransferPlan.Side) async throws -> End {
    let programs = RunningProgram.path(of: "siwa").dropLast("/siwa".count)
    let environment = ["SIWA_CONFIG": paths[side] ?? "", "PATH": "\(programs):/usr/bin:/bin"]
    let script = "mkdir -p '\(folder(of: side))' && cd '\(folder(of: side))'\n\(line)"
    return try await RunningProgram.run(path: "/bin/sh", ["-eu", "-c", script], environment) { program in
      let outcome = try await program.outcome()
      said += program.output + program.errors
      return outcome
    }
  }

  /// Where a side's operator works.
  func folder(of side: TransferPlan.Side) -> String { "\(files.path)/\(side.rawValue)" }

  /// Has it done, and killed as soon as Apple was asked so many times more; again until it has ended by itself. Returns
  /// how often it was killed.
  func run(
    _ side: TransferPlan.Side, _ words: [String], killedAfter questions: [Int], within time: Duration = .seconds(300)
  ) async throws -> (Int, End) {
    var kills = 0
    while true {
      let limit = kills < questions.count ? apple.migrationsAsked + questions[kills] : Int.max
      let end = try await run(side, words) { program in
        try await until(within: time) { self.apple.migrationsAsked >= limit || program.hasEnded }
        program.signal(SIGKILL)
      }
      if end.end != .signal(SIGKILL) { return (kills, end) }
      kills += 1
    }
  }

  /// The plan of a side, prepared; the words of the command are the page's.
  func prepare(_ side: TransferPlan.Side, _ more: String...) async throws -> End {
    let (team, other) = side == .sending ? (Self.sender, Self.recipient) : (Self.recipient, Self.sender)
    return try await run(
      side,
      ["migrate", "prepare", Self.plan(side), "--\(side.rawValue)", "--team", team, "--other-team", other]
        + ["--client", Self.app] + more
    ) { program in _ = try await program.untilEnd() }
  }

  /// The plans of both sides, of a transfer that was accepted just now.
  func prepareBoth() async throws {
    accept()
    let accepted = Timestamp.now.description
    for side in TransferPlan.Side.allCases {
      #expect(try await prepare(side, "--accepted", accepted).end == .exit(0))
    }
  }

  /// What has a configuration name one more team, with a key that is its own, or another team's.
  func key(of owner: String, as team: String? = nil, for client: String) throws -> [String] {
    let team = team ?? owner
    return [
      "--set", "teams.\(team).audiences=\(client)", "--set", "teams.\(team).key-id=\(try #require(keys[owner]).id)",
      "--set", "teams.\(team).private-key=\(files.path)/\(owner).p8",
    ]
  }

  nonisolated static func plan(_ side: TransferPlan.Side) -> String { side == .sending ? "summer" : "spring" }

  /// Makes the key that signs, and returns its public key.
  func createKey() async throws -> String {
    let made = try await siwa(.sending, "migrate", "create-key", "example.com/transfer", files.path + "/migrate-key")
    try #require(made.end == .exit(0), "\(made)")
    return String(made.output.dropLast())
  }

  /// The store of a side, for as long as `body` needs it.
  func store<Value>(
    _ side: TransferPlan.Side, _ body: @Loop (any AccountStore, TransferPlan) async throws -> Value
  ) async throws -> Value {
    try await openStore(side) { store in try await body(store, try #require(try await store.transferPlans().first)) }
  }

  /// The same where there is no plan.
  func openStore<Value>(
    _ side: TransferPlan.Side, _ body: @Loop (any AccountStore) async throws -> Value
  ) async throws -> Value {
    try await #require(settings[side]).use(body)
  }

  // MARK: What came of it

  func file(_ name: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(fileURLWithPath: "\(files.path)/\(name)")), as: UTF8.self)
  }

  /// Nothing that was said or handed over names anybody: no subject and no address of either team; and identifiers stand in
  /// the files of users alone.
  func expectNothingPersonal(_ numbers: ClosedRange<Int>, in names: [String]) throws {
    let files = try names.map { try file($0) }
    for number in numbers {
      let person = Self.person(number)
      for somebody in [person, apple.known(person, to: Self.app)] {
        for text in [said] + files {
          let isNamed = text.contains(somebody.subject) || text.contains(somebody.address)
          if isNamed { return #expect(Bool(false), "somebody is named") }
        }
      }
    }
    #expect(!said.contains("001876.") && !said.contains("privaterelay"))
    // A key of a log may well hold these three letters.
    #expect(said.firstMatch(of: /eyJ[\w-]+\.eyJ/) == nil, "no client secret")
    #expect(said.firstMatch(of: /a[0-9a-f]{32}\.0\./) == nil, "no token")
    for (name, text) in zip(names, files) where name.hasSuffix(".txt") { #expect(!text.contains("001876.")) }
  }

  /// Who came to which account, by the file of results: each to their own, and once.
  func expectResults(
    _ name: String, of numbers: some Sequence<Int>, by key: (Int) -> String = { "customer-\($0)" }
  ) throws {
    let expected = Dictionary(
      uniqueKeysWithValues: numbers.map { number in (key(number), apple.known(Self.person(number), to: Self.app)) })
    var found: Set<String> = []
    for line in try file(name).split(separator: "\n") {
      let object = try String(line).object
      let key = try #require(object["key"] as? String)
      #expect(found.insert(key).inserted, "\(key) twice")
      #expect(object["sub"] as? String == expected[key]?.subject, "\(key)")
      #expect(object["email"] as? String == expected[key]?.address, "\(key)")
      #expect(object["is_private_email"] as? Bool == expected[key]?.hidesAddress, "\(key)")
    }
    #expect(found == Set(expected.keys))
  }
}
