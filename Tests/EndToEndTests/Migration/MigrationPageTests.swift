import AccountEvents
import AccountStore
import AppleSimulator
import EventLoop
import Foundation
import TestSupport
import Testing

/// docs/migration.md, followed from the beginning to the end: the very commands that stand there, in their order, by the
/// operators of two teams, each in a folder of their own.
@Loop @Suite(.timeLimit(.minutes(30)))
struct MigrationPageTests {
  /// How many users there are, and who of them has withdrawn consent when the sending team asks.
  private static let (users, withdrawn) = (40, [7, 31])
  /// The commands that end with 1, as somebody was refused.
  private static let endWithOne = [
    "siwa migrate generate summer --requests 20", "siwa migrate export summer handover", "siwa migrate status summer",
  ]

  @Test(.enabled("needs Debian's package age") { FileManager.default.isExecutableFile(atPath: "/usr/bin/age") })
  func twoTeamsFollowThePageFromTheBeginningToTheEnd() async throws {
    let commands = try Self.commands(of: "docs/migration.md")
    try await MigrationStage.run(isAppMoved: false) { stage in
      let keys = try await signUp(stage)
      for number in Self.withdrawn {
        stage.apple.withdrawConsent(of: MigrationStage.person(number), to: MigrationStage.app)
      }
      // It takes its time, and has nothing to do with what follows.
      async let rehearsal = stage.sh(commands[0], .sending)
      for command in commands.dropFirst() {
        if command.contains(" accept ") { stage.accept() }
        if command.contains(" accept spring ") { try stage.moveApp() }
        if command.contains(" --refused-again") {
          for number in Self.withdrawn {
            _ = try stage.apple.signIn(MigrationStage.person(number), to: MigrationStage.app)
          }
        }
        let side = Self.side(of: command)
        let end = try await stage.sh(try Self.filled(command, with: stage.said), side)
        let expected: CInt = Self.endWithOne.contains(where: { command.hasPrefix($0) }) ? 1 : 0
        #expect(end.end == .exit(expected), "\(command)\n\(end)")
        if command.contains(" export ") { try hand(over: command.split(separator: " ")[4], stage) }
      }
      #expect(try await rehearsal.end == .exit(0))
      try stage.expectResults("receiving/results.jsonl", of: 1...Self.users) { keys[$0] ?? "" }
      try stage.expectNothingPersonal(
        1...Self.users, in: ["handover", "later"].map { "sending/\($0)/manifest.txt" })
      for side in TransferPlan.Side.allCases {
        #expect(try await stage.siwa(side, "migrate", "status").output == "There is no plan.\n")
      }
    }
  }

  /// Has all users sign up at the sending team. Returns the ids of their accounts.
  private func signUp(_ stage: MigrationStage) async throws -> [Int: String] {
    let team = try #require(TeamID(MigrationStage.sender))
    var keys: [Int: String] = [:]
    try await stage.openStore(.sending) { store in
      for number in 1...Self.users {
        let account = Account(team: team, subject: try #require(AppleSubject(MigrationStage.person(number).subject)))
        _ = try await store.recordSignIn(account, at: .now, tokens: [])
        keys[number] = store.id(of: account).description
      }
    }
    return keys
  }

  /// What one team gives to the other.
  private func hand(over name: Substring, _ stage: MigrationStage) throws {
    let folders = TransferPlan.Side.allCases.map { "\(stage.folder(of: $0))/\(name)" }
    try FileManager.default.copyItem(atPath: folders[0], toPath: folders[1])
  }

  /// The lines in the page's fences, in their order, up to where it has told of the end.
  private static func commands(of page: String) throws -> [String] {
    let parts = String(decoding: try Repository.bytes(page), as: UTF8.self).split(
      separator: "\n## What comes of a user\n")
    try #require(parts.count == 2)
    let text = parts[0]
    var (commands, isFenced): ([String], Bool) = ([], false)
    for line in text.split(separator: "\n") {
      let line = line.trimmingCharacters(in: .whitespaces)
      if line.hasPrefix("```") {
        isFenced.toggle()
      } else if isFenced {
        commands.append(line)
      }
    }
    return commands
  }

  /// Which operator it is for: the plan's name says it, and where there is none, what it is good for.
  private static func side(of command: String) -> TransferPlan.Side {
    command.contains(" spring") || command.hasPrefix("age-keygen") ? .receiving : .sending
  }

  /// What whoever reads the page puts in: the time of the acceptance, and what was printed before in place of what ends with
  /// an ellipsis.
  private static func filled(_ command: String, with said: String) throws -> String {
    let time = command.replacing("2026-05-03T10:00:00Z", with: Timestamp.now.description)
    return try time.split(separator: " ", omittingEmptySubsequences: false).map { word in
      guard word.hasSuffix("…") else { return String(word) }
      let printed = said.split(whereSeparator: \.isWhitespace).first { $0.hasPrefix(word.dropLast()) }
      return String(try #require(printed, "nothing was printed that begins like \(word)"))
    }.joined(separator: " ")
  }
}
