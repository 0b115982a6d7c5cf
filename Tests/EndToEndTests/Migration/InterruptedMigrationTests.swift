import AccountEvents
import AccountStore
import AppleSimulator
import EventLoop
import Foundation
import Glibc
import SQLite
import TestSupport
import Testing

/// What comes to its end, or is killed, while `siwa migrate` works.
@Loop @Suite(.timeLimit(.minutes(15))) struct InterruptedMigrationTests {
  private static let fast = ["--requests", "2000", "--concurrency", "16"]

  @Test func theHourOfTheTokenEndsInTheMiddleAndNobodyIsLost() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...300))
      let end = try await stage.run(.sending, ["migrate", "generate", "summer"] + Self.fast) { program in
        for limit in [50, 150, 250] {
          try await until { stage.apple.migrationsAsked >= limit || program.hasEnded }
          stage.apple.endTeamTokens()
        }
      }
      #expect(end.end == .exit(0) && end.output.contains("Done       300\n"), "\(end)")
      #expect(stage.apple.migrationsAsked <= 300 + 3 * 16, "who was on the way is asked about again, and nobody else")
    }
  }

  /// Both last an hour, and are renewed when a fifth of it is left. Meanwhile three hours pass on either side, for Apple and
  /// for the program.
  @Test func theTokensHourAndTheSecretsEndComeInTheMiddleAndNobodyIsAskedAboutTwice() async throws {
    try await MigrationStage.run { stage in
      try await stage.makeClocksTurnable()
      stage.apple.migrationDelay = .milliseconds(10)
      try await stage.prepareBoth()
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...800))

      @Loop func batch(_ side: TransferPlan.Side, _ command: String) async throws {
        let (asked, tokens) = (stage.apple.migrationsAsked, stage.apple.tokensAsked)
        let end = try await stage.run(
          side, ["migrate", command, MigrationStage.plan(side)] + Self.fast
        ) { program in
          for step in 1...18 {
            try await until { stage.apple.migrationsAsked >= asked + 40 * step || program.hasEnded }
            #expect(!program.hasEnded, "it goes on")
            stage.turn(by: .seconds(600))
          }
        }
        #expect(end.end == .exit(0) && end.output.contains("Done       800\n"), "\(end)")
        #expect(stage.apple.migrationsAsked == asked + 800)
        #expect(stage.apple.tokensAsked >= tokens + 4, "of an hour each")
      }
      try await batch(.sending, "generate")
      let (vkey, directory) = (try await stage.createKey(), stage.files.path + "/handover")
      let export = try await stage.siwa(
        .sending, "migrate", "export", "summer", directory, "--key", stage.files.path + "/migrate-key")
      #expect(export.end == .exit(0), "\(export)")
      let taken = try await stage.siwa(.receiving, "migrate", "import", "spring", directory, "--signer", vkey)
      #expect(taken.end == .exit(0), "\(taken)")
      try await batch(.receiving, "exchange")
    }
  }

  @Test func ofAPlanWhoseRemovalWasBrokenOffStatusSaysSo() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.receiving).end == .exit(0))
      _ = try await stage.comeToOneAccount(3)
      try stage.breakRemovals(true, .receiving)
      let broken = try await stage.siwa(.receiving, "migrate", "remove", "spring", "--yes")
      #expect(broken.end == .exit(2), "\(broken)")

      let what = "being removed, and nothing of its users can be read: siwa migrate remove spring --yes ends it"
      let status = try await stage.siwa(.receiving, "migrate", "status", "--refused")
      #expect(status.end == .exit(1) && status.output.hasSuffix("\nRemoval    \(what)\nLeft       3\n"), "\(status)")
      let json = try await stage.siwa(.receiving, "migrate", "status", "spring", "--json")
      #expect(try json.end == .exit(1) && json.output.object["being_removed"] as? Bool == true, "\(json)")
      for command in ["exchange", "prepare"] {
        let refused = try await stage.siwa(.receiving, "migrate", command, "spring")
        #expect(refused.end == .exit(2) && refused.errors == "siwa: the plan spring is \(what)\n", "\(refused)")
      }
      let anew = try await stage.prepare(.receiving)
      #expect(anew.end == .exit(2) && anew.errors.contains("there is a plan of that name, \(what)"), "\(anew)")
      let second = try await stage.siwa(
        .receiving, "migrate", "prepare", "autumn", "--receiving", "--team", MigrationStage.recipient, "--other-team",
        MigrationStage.sender, "--client", MigrationStage.app)
      #expect(second.output.hasPrefix("Plan       autumn"), "it leads nobody anywhere: \(second)")

      try stage.breakRemovals(false, .receiving)
      let asked = try await stage.siwa(.receiving, "migrate", "remove", "spring")
      #expect(asked.end == .exit(2) && asked.output.hasSuffix("Left       3\nNothing was removed: say --yes\n"))
      #expect(try await stage.siwa(.receiving, "migrate", "remove", "spring", "--yes").end == .exit(0))
      #expect(try await !stage.siwa(.receiving, "migrate", "status").output.contains("spring"))
    }
  }

  @Test(arguments: [false, true])
  func killedBetweenApplesAnswerAndTheStoreNobodyIsLost(isPostgreSQL: Bool) async throws {
    guard !isPostgreSQL || PostgreSQLServer.programs != nil else { return }
    try await MigrationStage.run(isPostgreSQL: isPostgreSQL) { stage in
      stage.apple.migrationDelay = .milliseconds(20)
      stage.apple.withdrawConsent(of: MigrationStage.person(7), to: MigrationStage.app)
      try await stage.prepareBoth()
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...600))
      let (kills, end) = try await stage.run(
        .sending, ["migrate", "generate", "summer"] + Self.fast, killedAfter: [1, 60, 150, 90])
      #expect(kills == 4 && end.output.contains("Done       599\nRefused    1\n"), "\(end)")
      #expect(stage.apple.migrationsAsked <= 732, "\(stage.apple.migrationsAsked)")

      let vkey = try await stage.createKey()
      let directory = stage.files.path + "/handover"
      let export = ["migrate", "export", "summer", directory, "--key", stage.files.path + "/migrate-key"]
      for name in ["users.jsonl.new", "users.csv.new"] {
        _ = try await stage.run(.sending, export) { program in
          try await until { unsafe access("\(directory)/\(name)", F_OK) == 0 || program.hasEnded }
          program.signal(SIGKILL)
        }
      }
      #expect(try await stage.run(.sending, export) { _ in }.output.hasPrefix("Exported   599\n"))
      let words = ["migrate", "import", "spring", directory, "--signer", vkey]
      _ = try await stage.run(.receiving, words) { program in
        try await until { program.hasEnded || self.hasOpened("\(directory)/users.jsonl", program) }
        program.signal(SIGKILL)
      }
      _ = try await stage.run(.receiving, words) { _ in }
      let before = stage.apple.migrationsAsked
      let (more, exchanged) = try await stage.run(
        .receiving, ["migrate", "exchange", "spring"] + Self.fast, killedAfter: [1, 60, 150, 90])
      #expect(more == 4 && exchanged.end == .exit(0) && exchanged.output.contains("Done       599\n"), "\(exchanged)")
      #expect(stage.apple.migrationsAsked - before <= 731)
      let results = stage.files.path + "/results.jsonl"
      #expect(try await stage.siwa(.receiving, "migrate", "results", "spring", results).end == .exit(0))
      try stage.expectResults("results.jsonl", of: (1...600).filter { $0 != 7 })
      try stage.expectNothingPersonal(
        1...600, in: ["manifest.txt", "users.jsonl", "users.csv"].map { "handover/\($0)" })
    }
  }

  /// Whether the program has the file open now.
  private func hasOpened(_ path: String, _ program: RunningProgram) -> Bool {
    let folder = "/proc/\(program.identifier)/fd"
    guard let names = FileManager.default.subpaths(atPath: folder) else { return false }
    return names.contains { name in
      var target = [CChar](repeating: 0, count: 4096)
      let count = unsafe readlink("\(folder)/\(name)", &target, target.count)
      return count > 0 && String(decoding: target.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) == path
    }
  }
}

extension MigrationStage {
  /// Has the store fail where a user of a plan is removed, or no longer.
  fileprivate func breakRemovals(_ isBroken: Bool, _ side: TransferPlan.Side) throws {
    let database = try Database(
      files.path + "/\(side.rawValue).sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(60))
    let words: StaticString =
      isBroken
      ? "CREATE TRIGGER fault BEFORE DELETE ON transfer_user BEGIN SELECT RAISE(ABORT, 'fault'); END"
      : "DROP TRIGGER fault"
    try database.execute(words)
  }
}
