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
        for _ in 1...3 {
          // Far enough apart that the next token has been good: where two in a row are not, Apple is in doubt, and is asked
          // about somebody once more.
          let asked = stage.apple.migrationsAsked
          try await until { stage.apple.migrationsAsked >= asked + 60 || program.hasEnded }
          stage.apple.endTeamTokens()
        }
      }
      #expect(end.end == .exit(0) && end.output.contains("Done       300\n"), "\(end)")
      #expect(
        stage.apple.migrationsAsked <= 300 + 3 * 16, "who was on the way is asked about again, and nobody else: \(end)")
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
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...1200))

      @Loop func batch(_ side: TransferPlan.Side, _ command: String) async throws {
        let (asked, tokens) = (stage.apple.migrationsAsked, stage.apple.tokensAsked)
        let end = try await stage.run(
          side, ["migrate", command, MigrationStage.plan(side), "--requests", "2000", "--concurrency", "4"]
        ) { program in
          for _ in 1...18 {
            // Who was on the way when the clocks were turned last has been answered: a token that is good for ten minutes
            // more is not good for twenty. So few at once that all turns come before the end, however late this is.
            let last = stage.apple.migrationsAsked
            try await until { stage.apple.migrationsAsked >= last + 8 || program.hasEnded }
            #expect(!program.hasEnded, "it goes on")
            stage.turn(by: .seconds(600))
          }
        }
        #expect(end.end == .exit(0) && end.output.contains("Done       1200\n"), "\(end)")
        #expect(stage.apple.migrationsAsked == asked + 1200)
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
      try await bringUsers(stage)
      let (kills, end) = try await stage.run(
        .sending, ["migrate", "generate", "summer"] + Self.fast, killedAfter: [1, 60, 150, 90])
      #expect(kills == 4 && end.output.contains("Done       599\nRefused    1\n"), "\(end)")
      #expect(stage.apple.migrationsAsked <= 732, "\(stage.apple.migrationsAsked)")

      let vkey = try await stage.createKey()
      let directory = stage.files.path + "/handover"
      let export =
        ["migrate", "export", "summer", directory, "--key", stage.files.path + "/migrate-key"]
        + ["--age", "age1"]
      let age = try HeldAge(stage.files)
      for name in ["users.jsonl.age.new", "users.csv.age.new"] {
        age.isHeld = true
        let killed = try await stage.run(.sending, export, age.environment) { program in
          try await until { unsafe access("\(directory)/\(name)", F_OK) == 0 || program.hasEnded }
          program.signal(SIGKILL)
          age.isHeld = false
        }
        #expect(killed.end == .signal(SIGKILL), "\(killed)")
      }
      let exported = try await stage.run(.sending, export, age.environment) { _ in }
      #expect(exported.output.hasPrefix("Exported   599\n"), "\(exported)")
      let words = ["migrate", "import", "spring", directory, "--signer", vkey, "--identity", "age.key"]
      age.isHeld = true
      let killed = try await stage.run(.receiving, words, age.environment) { program in
        try await until {
          if program.hasEnded { return true }
          return try await stage.census(.receiving).users > 0
        }
        program.signal(SIGKILL)
        age.isHeld = false
      }
      #expect(killed.end == .signal(SIGKILL), "\(killed)")
      #expect(1..<599 ~= (try await stage.census(.receiving)).users, "in the middle of them")
      let taken = try await stage.run(.receiving, words, age.environment) { _ in }
      #expect(taken.end == .exit(0) && taken.output.contains("Waiting    599\n"), "\(taken)")
      let before = stage.apple.migrationsAsked
      let (more, exchanged) = try await stage.run(
        .receiving, ["migrate", "exchange", "spring"] + Self.fast, killedAfter: [1, 60, 150, 90])
      #expect(more == 4 && exchanged.end == .exit(0) && exchanged.output.contains("Done       599\n"), "\(exchanged)")
      #expect(stage.apple.migrationsAsked - before <= 731)
      let results = stage.files.path + "/results.jsonl"
      #expect(try await stage.siwa(.receiving, "migrate", "results", "spring", results).end == .exit(0))
      try stage.expectResults("results.jsonl", of: (1...600).filter { $0 != 7 })
      try stage.expectNothingPersonal(
        1...600, in: ["manifest.txt", "users.jsonl.age", "users.csv.age"].map { "handover/\($0)" })
    }
  }

  /// Brings 600 users; killed in the middle of them, the same again brings the rest.
  private func bringUsers(_ stage: MigrationStage) async throws {
    let words = ["migrate", "users", "summer", "--from-input"]
    let killed = try await stage.run(.sending, words) { program in
      // The others are still to come.
      try program.write(MigrationStage.lines(1...400))
      try await until {
        if program.hasEnded { return true }
        return try await stage.census(.sending).users > 0
      }
      program.signal(SIGKILL)
    }
    #expect(killed.end == .signal(SIGKILL), "\(killed)")
    #expect(1..<600 ~= (try await stage.census(.sending)).users, "in the middle of them")
    let rest = try await stage.siwa(
      .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...600))
    #expect(rest.end == .exit(0) && rest.output.contains("Waiting    600\n"), "\(rest)")
  }
}

/// A program in the place of age, which passes everything on as it is: while it is held, all but the end.
private final class HeldAge {
  /// What the program's environment needs.
  let environment: [String: String]
  var isHeld = false {
    didSet {
      let files = FileManager.default
      for name in ["hold", "read"] { try? files.removeItem(atPath: "\(folder)/\(name)") }  // where it is there
      if isHeld { _ = files.createFile(atPath: "\(folder)/hold", contents: nil) }
    }
  }
  private let folder: String

  init(_ files: TemporaryDirectory) throws {
    folder = files.path + "/held-age"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    // An import reads everything once before it takes anybody over.
    let path = files.write(
      "held-age/age",
      """
      #!/bin/sh
      hold="$HOME/hold"
      case "$1" in
      --decrypt)
        if [ ! -e "$hold" ]; then exec cat; fi
        if [ ! -e "$HOME/read" ]; then : >"$HOME/read"; exec cat; fi
        head -n 550 ;;
      *) cat ;;
      esac
      while [ -e "$hold" ]; do sleep 0.05; done

      """)
    try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
    environment = ["PATH": "\(folder):/usr/bin:/bin", "HOME": folder]
  }

  deinit { isHeld = false }
}

extension MigrationStage {
  /// How far the plan of a side is.
  fileprivate func census(_ side: TransferPlan.Side) async throws -> TransferCensus {
    try await store(side) { store, plan in try await store.census(of: plan) }
  }

  /// Has the store fail where a user of a plan is removed, or no longer.
  fileprivate func breakRemovals(_ isBroken: Bool, _ side: TransferPlan.Side) throws {
    let database = try Database(
      files.path + "/\(side.rawValue).sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    let words: StaticString =
      isBroken
      ? "CREATE TRIGGER fault BEFORE DELETE ON transfer_user BEGIN SELECT RAISE(ABORT, 'fault'); END"
      : "DROP TRIGGER fault"
    try database.execute(words)
  }
}
