import AccountEvents
import AccountStore
import AppleSimulator
import EventLoop
import TestSupport
import Testing

/// A whole transfer between the built programs of two teams, killed again and again on either side, while Apple throttles one
/// question in a hundred, one person in a hundred withdraws consent, and some sign in at the team that gets the app: see
/// docs/reliability.md.
@Loop
struct MigrationTrial {
  /// How many users there are, and how often each side's batch is killed.
  let users, kills: Int
  /// How many requests a second, and how many at once.
  let rate, concurrency: Int
  /// How long whoever is throttled is asked to wait.
  let retryAfter: Duration
  let isPostgreSQL: Bool

  /// No command takes longer.
  private static let patience = Duration.seconds(3 * 3600)

  /// Throws or fails unless everybody came to exactly their account or stands on a list of refusals.
  func run() async throws {
    let random = SeededRandom()
    print("seed \(random.seed): \(users) users are moved\(isPostgreSQL ? ", with PostgreSQL" : "")")
    try await MigrationStage.run(isPostgreSQL: isPostgreSQL) { stage in
      var random = random
      stage.apple.migrationDelay = .milliseconds(5)
      (stage.apple.migrationThrottle, stage.apple.retryAfter) = (100, retryAfter)
      try await stage.prepareBoth()
      try await fill(stage)
      let (early, late) = (stride(from: 7, through: users, by: 200), stride(from: 107, through: users, by: 200))

      for number in early { withdraw(number, stage) }
      try await batch(.sending, "generate", users, stage, &random)
      let count = users - Array(early).count
      try await handOver(count, stage)
      for number in late { withdraw(number, stage) }
      let gone = Set(early).union(late)
      let stayed = (1...users).filter { !gone.contains($0) }
      let people = Array(stayed.shuffled(using: &random).prefix(max(5, users / 50)))
      let known = try identifiers(of: people, stage)
      let signingIn = Task(executorPreference: Loop.executor) {
        try await self.signIn(people, known, during: count, stage)
      }
      defer { signingIn.cancel() }
      try await batch(.receiving, "exchange", count, stage, &random)
      try await signingIn.value

      let results = try await finish(
        .receiving, ["migrate", "results", "spring", stage.files.path + "/results.jsonl"], stage)
      #expect(results.output.hasPrefix("Written    \(stayed.count) users"), "\(results)")
      try stage.expectResults("results.jsonl", of: stayed)
      try await expectRefused(early, .sending, stage)
      try await expectRefused(late, .receiving, stage)
      let census = try await stage.store(.receiving) { store, plan in try await store.census(of: plan) }
      #expect(census.signedIn == people.count && census.waiting == 0 && census.conflicts.isEmpty)
      try stage.expectNothingPersonal(1...min(users, 200), in: ["handover/manifest.txt"])
    }
  }

  private func withdraw(_ number: Int, _ stage: MigrationStage) {
    stage.apple.withdrawConsent(of: MigrationStage.person(number), to: MigrationStage.app)
  }

  private func fill(_ stage: MigrationStage) async throws {
    try await stage.store(.sending) { store, plan in
      for first in stride(from: 1, through: users, by: 500) {
        let some = try (first...min(first + 499, users)).map { number in
          NewTransferUser(
            key: "customer-\(number)", subject: try #require(AppleSubject(MigrationStage.person(number).subject)))
        }
        #expect(try await store.add(some, to: plan) == some.count)
      }
    }
  }

  /// One side's batch, killed at random moments.
  private func batch(
    _ side: TransferPlan.Side, _ command: String, _ count: Int, _ stage: MigrationStage, _ random: inout SeededRandom
  ) async throws {
    let before = stage.apple.migrationsAsked
    // Behind the last kill some are left.
    var places: [Int] = []
    for _ in 0..<kills { places.append(Int.random(in: 1...max(2, count / (kills + 2)), using: &random)) }
    let (killed, end) = try await stage.run(
      side,
      ["migrate", command, MigrationStage.plan(side), "--requests", "\(rate)", "--concurrency", "\(concurrency)"],
      killedAfter: places, within: Self.patience)
    #expect(killed == kills && end.output.contains("Waiting    0\n"), "\(end)")
    let asked = stage.apple.migrationsAsked - before
    print("\(command): \(asked) requests for \(count) users, killed \(killed) times")
    // Whoever was under way, whoever was throttled, the first one, and those with whom a batch is sure of Apple.
    let most = count + kills * (2 * concurrency + 1) + asked / 100 + 20
    #expect(asked <= most)
  }

  private func handOver(_ count: Int, _ stage: MigrationStage) async throws {
    let (vkey, directory) = (try await stage.createKey(), stage.files.path + "/handover")
    let export = try await finish(
      .sending, ["migrate", "export", "summer", directory, "--key", stage.files.path + "/migrate-key"], stage)
    #expect(export.output.hasPrefix("Exported   \(count)\n"), "\(export)")
    let taken = try await finish(.receiving, ["migrate", "import", "spring", directory, "--signer", vkey], stage)
    #expect(taken.end == .exit(0) && taken.output.contains("New        \(count)\n"), "\(taken)")
  }

  private func finish(
    _ side: TransferPlan.Side, _ words: [String], _ stage: MigrationStage
  ) async throws -> MigrationStage.End {
    try await stage.run(side, words) { program in try await until(within: Self.patience) { program.hasEnded } }
  }

  /// The transfer identifiers of people, by their numbers, as they were handed over.
  private func identifiers(of people: [Int], _ stage: MigrationStage) throws -> [Int: TransferSubject] {
    let wanted = Dictionary(uniqueKeysWithValues: people.map { ("customer-\($0)", $0) })
    var identifiers: [Int: TransferSubject] = [:]
    for line in try stage.file("handover/users.jsonl").split(separator: "\n") {
      // {"key":"customer-7","transfer_sub":"001876.r…"}
      let parts = line.split(separator: "\"", omittingEmptySubsequences: false).map(String.init)
      try #require(parts.count == 9)
      if let number = wanted[parts[3]] { identifiers[number] = TransferSubject(parts[7]) }
    }
    return identifiers
  }

  /// People sign in at the team that gets the app, spread over the first half of its batch: some before it has come to them,
  /// about whom Apple is not asked any more, some behind it.
  private func signIn(
    _ people: [Int], _ identifiers: [Int: TransferSubject], during count: Int, _ stage: MigrationStage
  ) async throws {
    let before = stage.apple.migrationsAsked
    try await stage.store(.receiving) { store, plan in
      for (index, number) in people.enumerated() {
        let place = before + index * count / (2 * people.count)
        try await until(within: Self.patience) { stage.apple.migrationsAsked >= place }
        let person = stage.apple.known(MigrationStage.person(number), to: MigrationStage.app)
        let account = Account(team: plan.team, subject: try #require(AppleSubject(person.subject)))
        let claim = TransferClaim(
          try #require(identifiers[number]), to: plan.client, address: RelayAddress(person.address), isPrivate: true)
        _ = try await store.recordSignIn(account, at: .now, tokens: [], of: nil, claiming: claim)
      }
    }
  }

  /// Who was refused, by the words of the command.
  private func expectRefused(
    _ numbers: some Sequence<Int>, _ side: TransferPlan.Side, _ stage: MigrationStage
  ) async throws {
    let status = try await finish(side, ["migrate", "status", MigrationStage.plan(side), "--refused"], stage)
    let refused = status.output.split(separator: "\n").filter { $0.hasPrefix("  ") && $0.contains("customer-") }
    #expect(Set(refused.map(String.init)) == Set(numbers.map { "  consent-withdrawn  customer-\($0)" }))
  }
}
