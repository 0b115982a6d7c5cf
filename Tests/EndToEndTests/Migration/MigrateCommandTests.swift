import AccountEvents
import AccountStore
import AppleSimulator
import EventLoop
import Foundation
import SQLite
import TestSupport
import Testing

/// `siwa migrate`, as the operators of two teams use it.
@Loop @Suite(.timeLimit(.minutes(15))) struct MigrateCommandTests {
  private static let fast = ["--requests", "2000", "--concurrency", "16"]

  /// docs/migration.md from the beginning to the end.
  private func followThePage(_ stage: MigrationStage, withAge: Bool) async throws {
    for number in stride(from: 7, through: 200, by: 50) {
      stage.apple.withdrawConsent(of: MigrationStage.person(number), to: MigrationStage.app)
    }
    let prepared = try await stage.prepare(.sending)
    #expect(prepared.end == .exit(0) && prepared.output.contains("Next       siwa migrate users summer"), "\(prepared)")
    let users = try await stage.siwa(
      .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...200))
    #expect(users.end == .exit(0) && users.output.hasPrefix("New        200\n"), "\(users)")
    let generated = try await stage.run(.sending, ["migrate", "generate", "summer"] + Self.fast) { _ in }
    #expect(generated.end == .exit(1) && generated.output.contains("Done       196\nRefused    4\n"), "\(generated)")
    #expect(generated.output.contains("  consent-withdrawn  4\n") && generated.output.contains("not accepted yet"))

    let vkey = try await stage.createKey()
    let age = withAge ? try await stage.ageKey() : nil
    let directory = stage.files.path + "/handover"
    let export = try await stage.run(
      .sending,
      ["migrate", "export", "summer", directory, "--key", stage.files.path + "/migrate-key"]
        + (age.map { ["--age", $0.recipient] } ?? [])
    ) { _ in }
    #expect(export.end == .exit(1) && export.output.hasPrefix("Exported   196\n"), "\(export)")

    #expect(try await stage.prepare(.receiving).end == .exit(0))
    let words = ["migrate", "import", "spring", directory, "--signer", vkey]
    let taken = try await stage.run(.receiving, words + (age.map { ["--identity", $0.identity] } ?? [])) { _ in }
    #expect(taken.end == .exit(0) && taken.output.contains("New        196\n"), "\(taken)")
    let twice = try await stage.run(.receiving, words + (age.map { ["--identity", $0.identity] } ?? [])) { _ in }
    #expect(twice.end == .exit(1) && twice.errors.contains("it was imported into the plan spring before"), "\(twice)")
    let early = try await stage.siwa(.receiving, "migrate", "exchange", "spring")
    #expect(early.end == .exit(2) && early.errors.contains("Before it is accepted"), "\(early)")

    stage.accept()
    let now = Timestamp.now.description
    #expect(try await stage.siwa(.sending, "migrate", "accept", "summer", now).output.contains("59 days 23 hours left"))
    #expect(try await stage.siwa(.receiving, "migrate", "accept", "spring", now).end == .exit(0))
    let exchanged = try await stage.run(.receiving, ["migrate", "exchange", "spring"] + Self.fast) { _ in }
    #expect(exchanged.end == .exit(0) && exchanged.output.contains("Done       196\nRefused    0\n"), "\(exchanged)")
    #expect(exchanged.output.contains("Trial      one user: Apple gives an account"), "\(exchanged)")
    let results = try await stage.siwa(.receiving, "migrate", "results", "spring", stage.files.path + "/results.jsonl")
    #expect(results.end == .exit(0) && results.output.contains("personal data"), "\(results)")
    try stage.expectResults("results.jsonl", of: (1...200).filter { $0 % 50 != 7 })

    let status = try await stage.siwa(.sending, "migrate", "status", "summer", "--refused")
    #expect(status.end == .exit(1) && status.output.contains("  consent-withdrawn  customer-107\n"), "\(status)")
    let json = try await stage.siwa(.receiving, "migrate", "status", "--json").output.object
    #expect(json["done"] as? Int == 196 && json["side"] as? String == "receiving")
    let names = ["manifest.txt"] + ["users.jsonl", "users.csv"].map { $0 + (age == nil ? "" : ".age") }
    try stage.expectNothingPersonal(1...200, in: names.filter { !$0.hasSuffix(".age") }.map { "handover/\($0)" })

    let asked = try await stage.siwa(.receiving, "migrate", "remove", "spring")
    #expect(asked.end == .exit(2) && asked.output.hasSuffix("say --yes\n"), "\(asked)")
    #expect(try await stage.siwa(.receiving, "migrate", "remove", "spring", "--yes").end == .exit(0))
    #expect(try await stage.siwa(.receiving, "migrate", "status").output == "There is no plan.\n")
  }

  @Test func twoTeamsMoveTheirUsersByThePage() async throws {
    try await MigrationStage.run { stage in try await followThePage(stage, withAge: false) }
  }

  @Test(PostgreSQLServer.isThere)
  func theSameWithPostgreSQL() async throws {
    try await MigrationStage.run(isPostgreSQL: true) { stage in try await followThePage(stage, withAge: false) }
  }

  @Test(.enabled("needs Debian's package age") { FileManager.default.isExecutableFile(atPath: "/usr/bin/age") })
  func theSameEncryptedByAge() async throws {
    try await MigrationStage.run { stage in try await followThePage(stage, withAge: true) }
  }

  @Test func whereBothKeysAreAtHandOneUserIsMovedThereAndBack() async throws {
    try await MigrationStage.run { stage in
      try await stage.prepareBoth()
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...5))
      let key = try stage.key(of: MigrationStage.recipient, for: "com.example.other")
      let prepared = try await stage.run(.sending, ["migrate", "prepare", "summer"] + key) { _ in }
      #expect(prepared.output.contains("one user is tried there and back"), "\(prepared)")
      let end = try await stage.run(.sending, ["migrate", "generate", "summer"] + key) { _ in }
      #expect(end.end == .exit(0) && end.output.contains("Trial      one user, there and back"), "\(end)")
      #expect(stage.apple.migrationsAsked == 6, "each user once, and the first one's identifier")
    }
  }

  @Test func aTerminalIsShownHowFarABatchIs() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...300))
      let seen = try await stage.sh(
        "script -qec 'siwa migrate generate summer --requests 200' /dev/null", .sending)
      #expect(seen.end == .exit(0) && seen.output.contains("Done       300"), "\(seen)")
      let bars = seen.output.split(separator: "\r").filter { $0.hasPrefix("[") }
      #expect(!bars.isEmpty && bars.allSatisfy { $0.contains("% ") && $0.contains(" of 300 ") }, "\(seen)")
      #expect(bars.contains { $0.contains("/s, 0:0") && $0.contains(" left") }, "\(seen)")
      try stage.expectNothingPersonal(1...300, in: [])
    }
  }

  // MARK: What keeps it from going on

  @Test func aPreparationSaysWhatIsNotInOrder() async throws {
    try await MigrationStage.run { stage in
      let plan = ["migrate", "prepare", "summer", "--sending", "--team", MigrationStage.sender, "--other-team"]
      let rest = [MigrationStage.recipient, "--client", MigrationStage.app]
      func prepare(_ more: String...) async throws -> MigrationStage.End {
        try await stage.run(.sending, plan + rest + more) { _ in }
      }
      let good = try await prepare()
      #expect(good.end == .exit(0) && good.output.contains("Key        ok: Apple takes "), "\(good)")
      #expect(good.output.contains("Client     ok: ") && good.output.contains("Way back   the first exchange of"))
      let audiences = "teams.\(MigrationStage.sender).audiences"
      let client = try await prepare("--set", "\(audiences)=com.example.other")
      #expect(
        client.end == .exit(1) && client.output.contains("Client     unknown: add com.example.app to \(audiences)"))
      let moved = try await stage.run(
        .sending,
        plan + rest + ["--set", "\(audiences)=com.example.other"]
          + stage.key(of: MigrationStage.recipient, for: MigrationStage.app)
      ) { _ in }
      #expect(
        moved.output.contains("is one of teams.\(MigrationStage.recipient).audiences\n"), "\(moved)")
      let keyless = try await stage.siwa(
        .sending, "migrate", "prepare", "other", "--sending", "--team", "Z9Y8X7W6V5", "--other-team",
        MigrationStage.recipient, "--client", MigrationStage.app)
      #expect(keyless.end == .exit(1), "\(keyless)")
      #expect(keyless.output.contains("Key        missing: set teams.Z9Y8X7W6V5.key-id"), "\(keyless)")
      #expect(keyless.output.contains("is one of teams.\(MigrationStage.sender).audiences\n"), "\(keyless)")

      // A day is left, and at one request a second that is too little.
      let late = Timestamp.now - .seconds(59 * 86_400)
      #expect(try await stage.siwa(.sending, "migrate", "accept", "summer", late.description).end == .exit(0))
      let many = (1...90_000).map { "{\"key\":\"customer-\($0)\",\"sub\":\"000001.old\($0).0001\"}\n" }.joined()
      let users = try await stage.siwa(.sending, "migrate", "users", "summer", "--from-input", input: many)
      #expect(users.output.hasPrefix("New        90000\n"), "\(users)")
      let end = try await stage.siwa(
        .sending, "migrate", "generate", "summer", "--requests", "1", "--set", "apple.token=http://127.0.0.1:1/")
      #expect(
        end.errors.contains("90000 users at 1 requests a second take 1 day 1 hour: longer than is left"), "\(end)")
    }
  }

  @Test func saysWhichOfKeyAppAndTeamIsWrong() async throws {
    try await MigrationStage.run { stage in
      let own = try await stage.siwa(
        .sending, "migrate", "prepare", "own", "--sending", "--team", MigrationStage.sender, "--other-team",
        MigrationStage.sender, "--client", MigrationStage.app)
      #expect(own.end == .exit(2) && own.errors.contains("--other-team is our own team"), "\(own)")
      #expect(try await stage.prepare(.sending).end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...5))

      let cases: [(change: String, words: [String])] = [
        (
          "teams.\(MigrationStage.sender).key-id=ZZZZZZZZZZ", ["ZZZZZZZZZZ", MigrationStage.sender, MigrationStage.app]
        ),
        (
          "teams.\(MigrationStage.sender).private-key=\(stage.files.path)/\(MigrationStage.recipient).p8", ["wrong key"]
        ),
        ("apple.token=http://127.0.0.1:1/auth/token", ["Apple answers nothing that can be used: unreachable"]),
      ]
      let stranger =
        [
          "--set", "teams.\(MigrationStage.sender).audiences=com.example.other",
        ] + (try stage.key(of: MigrationStage.sender, as: "Z9Y8X7W6V5", for: MigrationStage.app))
      let foreign = [
        "--sending", "--team", "Z9Y8X7W6V5", "--other-team", MigrationStage.recipient, "--client", MigrationStage.app,
      ]
      let prepared = try await stage.run(.sending, ["migrate", "prepare", "foreign"] + foreign + stranger) { _ in }
      #expect(prepared.end == .exit(1), "\(prepared)")
      #expect(prepared.output.contains("Key        wrong key, team or app, of which Apple says"), "\(prepared)")
      _ = try await stage.run(
        .sending, ["migrate", "users", "foreign", "--from-input"] + stranger
      ) { program in
        try program.write(MigrationStage.lines(1...5))
        program.endInput()
        _ = try await program.untilEnd()
      }
      let team = try await stage.run(.sending, ["migrate", "generate", "foreign"] + stranger) { _ in }
      #expect(team.end == .exit(2) && team.errors.contains("Team: is Z9Y8X7W6V5 the one that the key is of"), "\(team)")
      for (change, words) in cases {
        let end = try await stage.siwa(.sending, "migrate", "generate", "summer", "--set", change)
        #expect(end.end == .exit(change.hasPrefix("apple") ? 3 : 2), "\(end)")
        for word in words { #expect(end.errors.contains(word), "\(end)") }
      }
      let status = try await stage.siwa(.sending, "migrate", "status", "summer")
      #expect(status.end == .exit(1) && status.output.contains("Waiting    5\n"), "nobody is lost: \(status)")

      // Of the three Apple says the same; what it says of another app tells them apart.
      _ = try await stage.siwa(
        .sending, "migrate", "prepare", "wrong", "--sending", "--team", MigrationStage.sender, "--other-team",
        MigrationStage.recipient, "--client", "com.example.wrong")
      _ = try await stage.siwa(
        .sending, "migrate", "users", "wrong", "--from-input", input: MigrationStage.lines(1...5))
      let app = try await stage.siwa(.sending, "migrate", "generate", "wrong")
      #expect(app.end == .exit(2) && app.errors.contains("wrong key, team or app"), "\(app)")
      #expect(app.errors.contains("so it is the app, com.example.wrong, that is wrong"), "\(app)")
      let key = try await stage.siwa(.sending, "migrate", "generate", "wrong", "--set", cases[0].change)
      #expect(key.end == .exit(2) && key.errors.contains("for com.example.app either"), "\(key)")

      let side = try await stage.siwa(.sending, "migrate", "exchange", "summer")
      #expect(side.end == .exit(2) && side.errors.contains("one of the sending team"), "\(side)")
      let none = try await stage.siwa(.sending, "migrate", "generate", "winter")
      #expect(none.end == .exit(2) && none.errors.contains("there is no plan winter"), "\(none)")
    }
  }

  /// Before the acceptance the receiving team can ask nothing, and has the app nowhere.
  @Test func aPreparationSaysWhatAppleSaysOfTheKey() async throws {
    try await MigrationStage.run { stage in
      func prepare(_ side: TransferPlan.Side, _ more: String...) async throws -> MigrationStage.End {
        try await stage.run(side, ["migrate", "prepare", MigrationStage.plan(side)] + more) { _ in }
      }
      #expect(try await stage.prepare(.sending).end == .exit(0))
      let other = "\(stage.files.path)/\(MigrationStage.recipient).p8"
      let wrong = try await prepare(.sending, "--set", "teams.\(MigrationStage.sender).private-key=\(other)")
      #expect(wrong.end == .exit(1) && wrong.output.contains("Key        wrong key, team or app"), "\(wrong)")
      let away = try await prepare(.sending, "--set", "apple.token=http://127.0.0.1:1/")
      #expect(away.end == .exit(0) && away.output.contains("Apple was not asked: unreachable"), "\(away)")

      let audiences = "teams.\(MigrationStage.recipient).audiences"
      _ = try await stage.prepare(.receiving)
      let tokens = stage.apple.tokensAsked
      let early = try await prepare(.receiving, "--set", "\(audiences)=com.example.other")
      #expect(early.end == .exit(0) && early.output.contains("Apple was not asked, as the transfer is not"), "\(early)")
      #expect(
        early.output.contains(
          "Client     to come: add com.example.app to \(audiences) when the transfer is accepted\n"),
        "\(early)")
      #expect(stage.apple.tokensAsked == tokens)
      stage.accept()
      let open = try await prepare(
        .receiving, "--set", "\(audiences)=com.example.other", "--accepted", Timestamp.now.description)
      #expect(open.end == .exit(1) && open.output.contains("Client     unknown: add com.example.app"), "\(open)")
      #expect(open.output.contains("Key        ok: Apple takes "), "\(open)")
    }
  }

  /// Both keys are at hand, and the one on the way back is wrong: that is the one that is named.
  @Test func ofTheKeysOfBothTeamsTheWrongOneIsNamed() async throws {
    try await MigrationStage.run { stage in
      try await stage.prepareBoth()
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...5))
      let key = try stage.key(of: MigrationStage.sender, as: MigrationStage.recipient, for: "com.example.other")
      let end = try await stage.run(.sending, ["migrate", "generate", "summer"] + key) { _ in }
      #expect(end.end == .exit(2) && end.errors.contains("as one of team \(MigrationStage.recipient) for"), "\(end)")
      #expect(end.errors.contains("take the key of \(MigrationStage.recipient) for com.example.other either"), "\(end)")
    }
  }

  /// With the operator's own key.
  @Test func whoIsLeftIsNamed() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...30))
      #expect(try await stage.siwa(.sending, "migrate", "generate", "summer", "--requests", "200").end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(31...32))
      stage.apple.migrationOddities = Set((31...32).map { MigrationStage.person($0).subject })
      let end = try await stage.siwa(.sending, "migrate", "generate", "summer", "--requests", "200")
      let left = "\nLeft       2\n  unknown-error  customer-31\n  unknown-error  customer-32\n"
      #expect(end.end == .exit(1) && end.output.contains(left), "\(end)")
      try stage.expectNothingPersonal(1...32, in: [])
    }
  }

  @Test func afterSixtyDaysItSaysWhatHasEnded() async throws {
    try await MigrationStage.run { stage in
      let long = Timestamp.now - .seconds(61 * 86_400)
      let prepared = try await stage.prepare(.sending, "--accepted", long.description)
      #expect(
        prepared.end == .exit(1) && prepared.output.contains("Next       nothing more can be done"), "\(prepared)")
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...5))
      let end = try await stage.siwa(.sending, "migrate", "generate", "summer")
      #expect(end.end == .exit(2) && end.errors.contains("over since") && end.errors.contains("transfer_sub"), "\(end)")
      #expect(stage.apple.migrationsAsked == 0)
    }
  }

  /// The last one of the plan was refused: it is written down as Apple says something of the first one still.
  @Test func whoWasRefusedIsAskedAboutAgainWhereThatIsSaid() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...5))
      stage.apple.withdrawConsent(of: MigrationStage.person(5), to: MigrationStage.app)
      let refused = try await stage.siwa(.sending, "migrate", "generate", "summer")
      #expect(refused.end == .exit(1) && refused.output.contains("Done       4\nRefused    1\n"), "\(refused)")
      _ = try stage.apple.signIn(MigrationStage.person(5), to: MigrationStage.app)
      let before = stage.apple.migrationsAsked
      #expect(try await stage.siwa(.sending, "migrate", "generate", "summer").end == .exit(1))
      #expect(stage.apple.migrationsAsked == before)
      let again = try await stage.siwa(.sending, "migrate", "generate", "summer", "--refused-again")
      #expect(again.end == .exit(0) && again.output.contains("Done       5\nRefused    0\n"), "\(again)")
      #expect(stage.apple.migrationsAsked == before + 1)
    }
  }

  @Test func whereAppleRefusesEverybodyOnlyAnOperatorConcludesSomething() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...5))
      for number in 1...5 {
        stage.apple.withdrawConsent(of: MigrationStage.person(number), to: MigrationStage.app)
      }
      let doubted = try await stage.siwa(.sending, "migrate", "generate", "summer", "--believe-conflicts")
      #expect(doubted.end == .exit(2) && doubted.errors.contains("--believe-refusals"), "\(doubted)")
      #expect(doubted.output.contains("Waiting    5\n"), "\(doubted)")
      let believed = try await stage.siwa(.sending, "migrate", "generate", "summer", "--believe-refusals")
      #expect(believed.end == .exit(1) && believed.output.contains("Waiting    0\nDone       0\nRefused    5\n"))
    }
  }

  @Test func linesThatAreNoUsersAreNamedAndPassedOver() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      let secret = MigrationStage.person(3).subject
      let input =
        MigrationStage.lines(1...2) + "{\"key\":\"\(secret)\",\"sub\":\"\(secret)\"}\nnonsense\n"
        + MigrationStage.lines(2...4)
      let end = try await stage.siwa(.sending, "migrate", "users", "summer", "--from-input", input: input)
      #expect(end.end == .exit(1) && end.output.hasPrefix("New        4\nNo users   2\n"), "\(end)")
      #expect(end.errors.contains("line 3: key: holds a sub") && end.errors.contains("line 4: not one JSON object"))
      #expect(!end.errors.contains(secret))
    }
  }

  @Test func somebodyWithTwoKeysIsNamedByTheKeys() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      let secrets = [1, 2].map { MigrationStage.person($0).subject }
      let input =
        MigrationStage.lines(1...2) + "{\"key\":\"4711\",\"sub\":\"\(secrets[1])\"}\n" + MigrationStage.lines(1...3)
      let end = try await stage.siwa(.sending, "migrate", "users", "summer", "--from-input", input: input)
      #expect(
        end.end == .exit(1) && end.output.hasPrefix("New        3\nNo users   0\nTwo keys   1\nTwo people 0\n"),
        "\(end)")
      #expect(end.errors.contains("line 3: key 4711: the plan has the same person under the key customer-2"), "\(end)")
      let again = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input",
        input: "{\"key\":\"4712\",\"sub\":\"\(secrets[0])\"}\n")
      #expect(again.end == .exit(1) && again.errors.contains("line 1: key 4712:"), "\(again)")
      for secret in secrets { #expect(!(end.errors + again.errors).contains(secret)) }
    }
  }

  @Test func oneKeyForTwoPeopleIsNamedByTheLine() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      func line(_ key: String, _ number: Int) -> String {
        "{\"key\":\"\(key)\",\"sub\":\"\(MigrationStage.person(number).subject)\"}\n"
      }
      let end = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input",
        input: MigrationStage.lines(1...2) + line("customer-1", 3))
      #expect(end.end == .exit(1), "\(end)")
      #expect(end.output.hasPrefix("New        2\nNo users   0\nTwo keys   0\nTwo people 1\n"), "\(end)")
      #expect(end.errors == "siwa: line 3: key customer-1: the plan has another person under this key\n", "\(end)")
      // The same of a plan that has the first of both already; and under a key of their own they are added.
      let again = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: line("customer-2", 4) + line("customer-3", 3))
      #expect(
        again.end == .exit(1) && again.errors.contains("line 1: key customer-2: the plan has another"), "\(again)")
      #expect(again.output.hasPrefix("New        1\n"), "\(again)")
      let right = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...4))
      #expect(right.end == .exit(0) && right.output.hasPrefix("New        1\n"), "\(right)")
    }
  }

  @Test func aSecondPlanOfATransferIsRefusedByName() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.receiving).end == .exit(0))
      #expect(try await stage.prepare(.receiving).end == .exit(0), "the same again is no second one")
      let words = [
        "--receiving", "--team", MigrationStage.recipient, "--other-team", MigrationStage.sender, "--client",
      ]
      let second = try await stage.run(
        .receiving, ["migrate", "prepare", "autumn"] + words + [MigrationStage.app]
      ) { program in _ = try await program.untilEnd() }
      #expect(second.end == .exit(2) && second.errors.contains("the plan spring is of the same transfer"), "\(second)")
      let other = try await stage.run(
        .receiving, ["migrate", "prepare", "autumn"] + words + ["com.example.other"]
      ) { program in _ = try await program.untilEnd() }
      #expect(other.output.hasPrefix("Plan       autumn"), "another app's transfer is another one: \(other)")
    }
  }

  @Test func whatIsDecidedOfAConflictStandsInStatusAndResults() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.receiving).end == .exit(0))
      let account = try await stage.comeToOneAccount(3)
      let listed = try await stage.siwa(.receiving, "migrate", "decide", "spring")
      #expect(listed.end == .exit(1), "\(listed)")
      #expect(listed.output.hasPrefix("2  same-account  customer-2  account of customer-1\n"), "\(listed)")
      #expect(listed.output.contains("\n60 days    not accepted yet"), "\(listed)")

      let why = ["--by", "support", "--reason", "they have shown it"]
      func decide(_ words: String...) async throws -> MigrationStage.End {
        try await stage.run(.receiving, ["migrate", "decide", "spring"] + words) { program in
          _ = try await program.untilEnd()
        }
      }
      #expect(try await decide("2", "--keep-new").end == .exit(2), "nobody says who and why")
      #expect(try await decide("1", "--keep-new", why[0], why[1], why[2], why[3]).end == .exit(1), "it is no conflict")
      let first = try await decide("2", "--keep-new", why[0], why[1], why[2], why[3])
      #expect(first.end == .exit(0) && first.output.contains("2  customer-2  keep-new by support, "), "\(first)")
      let twice = try await decide("3", "--keep-new", why[0], why[1], why[2], why[3])
      #expect(twice.end == .exit(2) && twice.errors.contains("the one of user 2 already"), "\(twice)")
      #expect(try await decide("3", "--separate", why[0], why[1], why[2], why[3]).end == .exit(0))
      #expect(try await decide().end == .exit(0))

      let status = try await stage.siwa(.receiving, "migrate", "status", "spring", "--refused")
      #expect(status.end == .exit(0) && status.output.contains("Decided    2\n"), "\(status)")
      #expect(status.output.contains("  same-account  customer-3  separate by support, "), "\(status)")
      let results = try await stage.siwa(
        .receiving, "migrate", "results", "spring", stage.files.path + "/results.jsonl")
      #expect(results.end == .exit(0), "\(results)")
      let lines = try stage.file("results.jsonl").split(separator: "\n").map { try String($0).object }
      #expect(lines.map { $0["key"] as? String } == ["customer-1", "customer-2", "customer-3"])
      #expect(lines.map { $0["sub"] as? String } == [nil, account, nil])
      #expect(lines.map { $0["decision"] as? String } == ["keep-new", "keep-new", "separate"])

      // Two have decided at the same time, and neither knew of the other.
      _ = try await stage.store(.receiving) { store, plan in
        try await store.note(TransferDecision(.keepNew, by: "sales", because: "a call", at: .now), of: 3, in: plan)
      }
      let refused = try await stage.siwa(
        .receiving, "migrate", "results", "spring", stage.files.path + "/results.jsonl")
      #expect(refused.end == .exit(1), "\(refused)")
      #expect(refused.errors.contains("one account is of user 2 and of user 3 by decisions"), "\(refused)")
    }
  }

  /// Which app somebody uses is known of tokens alone.
  @Test func whereTheTeamHasOtherAppsItIsSaidThatAllAccountsWereAdded() async throws {
    try await MigrationStage.run { stage in
      #expect(try await stage.prepare(.sending).end == .exit(0))
      let alone = try await stage.siwa(.sending, "migrate", "users", "summer")
      #expect(alone.end == .exit(0) && alone.errors.isEmpty, "\(alone)")
      _ = try await stage.siwa(
        .sending, "migrate", "prepare", "autumn", "--sending", "--team", MigrationStage.sender, "--other-team",
        MigrationStage.recipient, "--client", "com.example.other")
      let several = try await stage.siwa(.sending, "migrate", "users", "autumn")
      #expect(several.end == .exit(0) && several.errors.contains("has other apps, too (com.example.app)"), "\(several)")
    }
  }

  @Test func whatIsDamagedInTheStoreIsCountedAndEndsWithOne() async throws {
    try await MigrationStage.run { stage in
      stage.accept()
      let accepted = Timestamp.now.description
      #expect(try await stage.prepare(.sending, "--accepted", accepted).end == .exit(0))
      _ = try await stage.siwa(
        .sending, "migrate", "users", "summer", "--from-input", input: MigrationStage.lines(1...5))
      #expect(try await stage.siwa(.sending, "migrate", "generate", "summer").end == .exit(0))
      try stage.damage(2, .sending)
      let (vkey, directory) = (try await stage.createKey(), stage.files.path + "/handover")
      let export = try await stage.siwa(
        .sending, "migrate", "export", "summer", directory, "--key", stage.files.path + "/migrate-key")
      #expect(export.end == .exit(1) && export.output.hasPrefix("Exported   4\n"), "\(export)")
      #expect(export.errors.contains("1 users are damaged in the store"), "\(export)")

      #expect(try await stage.prepare(.receiving, "--accepted", accepted).end == .exit(0))
      let taken = try await stage.siwa(.receiving, "migrate", "import", "spring", directory, "--signer", vkey)
      #expect(taken.end == .exit(0) && taken.output.contains("Refused    1 at the sending team: damaged"), "\(taken)")
      #expect(try await stage.siwa(.receiving, "migrate", "exchange", "spring").end == .exit(0))
      try stage.damage(1, .receiving)
      let leftover = stage.files.write("results.jsonl.new", "of a run that was killed")
      let results = try await stage.siwa(
        .receiving, "migrate", "results", "spring", stage.files.path + "/results.jsonl")
      #expect(results.end == .exit(1) && results.output.hasPrefix("Written    3 users"), "\(results)")
      #expect(results.errors.contains("1 users are damaged in the store"), "\(results)")
      #expect(results.errors.contains("\(leftover) was left by a run that was broken off"), "\(results)")
      #expect(!FileManager.default.fileExists(atPath: leftover))
    }
  }

  // MARK: The rehearsal

  @Test(arguments: [[], ["--faults"]])
  func aRehearsalEndsWithEverybodyWhereTheyHaveToBe(more: [String]) async throws {
    let end = try await RunningProgram.finish(
      path: RunningProgram.path(of: "siwa"),
      ["migrate", "rehearse", "--play", "120", "--requests", "100", "--users", "1000000"] + more)
    #expect(end.end == .exit(0), "\(end)")
    #expect(
      end.output.contains("Checked    118 came to exactly their account, 2 stand on the list of refusals"), "\(end)")
    #expect(end.output.contains("generate  2:46:40") && end.output.contains("they are enough"), "\(end)")
  }
}

extension MigrationStage {
  /// Has so many users of the receiving plan come to one account, whose subject is returned.
  func comeToOneAccount(_ count: Int) async throws -> String {
    let subject = try #require(AppleSubject("000002.one.0002"))
    try await store(.receiving) { store, plan in
      let users = try (1...count).map { number in
        NewTransferUser(
          key: "customer-\(number)", transferSubject: try #require(TransferSubject("001876.r\(number)")))
      }
      #expect(try await store.add(users, to: plan) == count)
      let lease = Lease(name: plan.lease, holder: "test", until: 0)
      #expect(try await store.take(lease, after: nil))
      let results = (1...count).map { number in
        TransferResult(Int64(number), .account(subject, address: nil, isPrivate: false))
      }
      #expect(try await store.record(results, of: plan, under: lease, at: .now)?.count == count)
      try await store.giveUp(lease)
    }
    return subject.text
  }

  /// Has the row of a user no longer open.
  fileprivate func damage(_ number: Int64, _ side: TransferPlan.Side) throws {
    let database = try Database(
      files.path + "/\(side.rawValue).sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try database.prepare("UPDATE transfer_user SET person = zeroblob(40) WHERE number = ?").run(number)
  }

  /// A key pair of age's: the file of its identity, and the recipient.
  fileprivate func ageKey() async throws -> (identity: String, recipient: String) {
    let made = try await RunningProgram.finish(path: "/usr/bin/age-keygen", [])
    let words = made.output.split(whereSeparator: \.isWhitespace)
    return (files.write("age.key", made.output), String(try #require(words.first { $0.hasPrefix("age1") })))
  }
}
