import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import Configuration
import Cryptography
import EventLoop
import HTTPClient
import TransparencyLog

/// Both teams of a transfer, each with a store of its own, and a simulated Apple between them.
@Loop
final class RehearsedTransfer {
  /// How long the simulated Apple takes for an answer, in seconds.
  nonisolated static let latency = 0.05
  private static let (sender, recipient, app) = ("A1B2C3D4E5", "F6G7H8J9K0", "com.example.app")
  /// One user in so many has withdrawn consent.
  private static let withdrawnShare = 100
  /// After so many failures of Apple's in a row a batch ends.
  private static let patience = 12

  /// What did not go as it has to.
  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private let folder: ScratchFolder
  private let apple: SimulatedApple
  private let server: SimulatedAppleServer
  private let rate: Int
  private let concurrency: Int
  private let hasFaults: Bool
  private let sending: Side
  private let receiving: Side
  private let age = Age(ConfigurationSources.processEnvironment)

  /// One team.
  private struct Side {
    let configuration: MigrationConfiguration
    let store: any AccountStore
    let plan: TransferPlan
  }

  /// Makes Apple, both stores and both plans; the transfer is accepted.
  init(rate: Int, concurrency: Int, hasFaults: Bool) async throws {
    (self.rate, self.concurrency, self.hasFaults) = (rate, concurrency, hasFaults)
    folder = try ScratchFolder()
    apple = SimulatedApple(
      ring: try KeyRing(generating: 1), issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { .now })
    server = try SimulatedAppleServer(apple, port: 0, tls: nil)
    let keys = (
      try apple.enroll(team: Self.sender, clients: [Self.app]), try apple.enroll(team: Self.recipient, clients: [])
    )
    try folder.write(keys.0.privateKeyPEM, to: "sender.p8")
    try folder.write(keys.1.privateKeyPEM, to: "recipient.p8")
    let now = Timestamp.now
    apple.transfer(Self.app, from: Self.sender, to: Self.recipient, acceptedAt: now)
    apple.populate(Self.app)
    apple.migrationDelay = .milliseconds(Int64(Self.latency * 1000))
    for side in TransferPlan.Side.allCases {
      try folder.write(try MasterKey.newText(), to: "\(side.rawValue)-master-key")
      try folder.write(
        """
        teams:
          \(Self.sender): { audiences: [\(Self.app)], key-id: \(keys.0.id), private-key: sender.p8 }
          \(Self.recipient): { audiences: [org.example.app], key-id: \(keys.1.id), private-key: recipient.p8 }
        apple:
          token: \(server.tokenURL)
          migration: \(server.migrationURL)
        store: { sqlite: \(side.rawValue).sqlite, master-key: \(side.rawValue)-master-key }

        """, to: "\(side.rawValue).yaml")
    }
    sending = try await Self.side(.sending, folder.file("sending.yaml"), accepted: now)
    receiving = try await Self.side(.receiving, folder.file("receiving.yaml"), accepted: now)
  }

  private static func side(
    _ side: TransferPlan.Side, _ file: String, accepted time: Timestamp
  ) async throws -> Side {
    let configuration = try ConfigurationSchema.siwa.load(
      MigrationConfiguration.self, from: ConfigurationSources(file: file)
    ).value
    _ = try await configuration.store.administration().begin()
    let store = try await configuration.store.open()
    let teams = side == .sending ? (sender, recipient) : (recipient, sender)
    guard let team = TeamID(teams.0), let other = TeamID(teams.1), let client = ClientID(app),
      let plan = TransferPlan(
        "rehearsal", side, team: team, otherTeam: other, client: client, createdAt: time, acceptedAt: time)
    else { preconditionFailure("our own constants") }
    _ = try await store.add(plan)
    return Side(configuration: configuration, store: store, plan: plan)
  }

  /// Plays it with so many users. Returns whether everybody is where they have to be.
  func run(_ count: Int) async throws -> Bool {
    let serving = Task(executorPreference: Loop.executor) { [server] in await server.run() }
    let result: Result<Bool, any Error>
    do { result = .success(try await play(count)) } catch { result = .failure(error) }
    await sending.store.close()
    await receiving.store.close()
    serving.cancel()
    await serving.value
    return try result.get()
  }

  private func play(_ count: Int) async throws -> Bool {
    try await addUsers(count)
    let generated = try await batch(sending, count, "Generate")
    let signer = try NoteSigner.generate(name: "rehearsal.example/transfer").signer
    let export = TransferExport(
      of: sending.plan, in: sending.store, to: folder.file("handover"), encryptedTo: nil, by: age)
    let manifest = try await export.run(signedBy: signer, at: .now) { _, _ in }.manifest
    Terminal.say("Export     \(manifest.done) users, signed by \(signer.key.name)")
    let users = TransferImport(
      into: receiving.plan, in: receiving.store, from: folder.file("handover"), signedBy: signer.key,
      decryptedWith: nil,
      by: age)
    Terminal.say("Import     \(try await users.run(at: .now) { _, _ in }.new) users")
    let exchanged = try await batch(receiving, Int(manifest.done), "Exchange")
    return try await check(count, generated, exchanged)
  }

  private func addUsers(_ count: Int) async throws {
    for first in stride(from: 1, through: count, by: 500) {
      let users = (first...min(first + 499, count)).compactMap { number in
        AppleSubject(Self.person(number).subject).map { NewTransferUser(key: "\(number)", subject: $0) }
      }
      _ = try await sending.store.add(users, to: sending.plan)
    }
    for number in stride(from: 7, through: count, by: Self.withdrawnShare) {
      apple.withdrawConsent(of: Self.person(number), to: Self.app)
    }
    Terminal.say("Users      \(count), \(Self.withdrawn(count)) of whom have withdrawn consent")
  }

  private static func person(_ number: Int) -> Person { Person(named: "user \(number) of the rehearsal") }

  private static func withdrawn(_ count: Int) -> Int { count < 7 ? 0 : (count - 7) / withdrawnShare + 1 }

  /// One side's batch, and how it went.
  private func batch(_ side: Side, _ count: Int, _ name: String) async throws -> TransferCensus {
    let lease = try await side.store.takeOver(side.plan.lease, by: try Lease.newHolder(), at: .now)
    let run = TransferRun(
      side.plan, side.store, under: lease,
      renew: { lease throws(AccountStoreError) in try await side.store.renew(lease) },
      apple: TransferApple(
        side.configuration, of: side.plan, concurrency: concurrency, userAgent: "siwa-rehearsal", now: { .now }),
      rate: rate, concurrency: concurrency, patience: Self.patience, clock: .system)
    let bar = ProgressBar("users")
    var faults: [(at: Int, answer: TokensAnswer)] =
      hasFaults ? [(count / 3, .throttled), (count * 2 / 3, .unavailable)] : []
    run.tell = { progress in
      bar.note(done: Int64(progress.answered), of: Int64(count))
      if let fault = faults.first, progress.answered >= fault.at {
        faults.removeFirst()
        self.apple.migrationAnswer = fault.answer
      } else if progress.share < 1 {
        self.apple.migrationAnswer = .tokens
      }
    }
    let begin = MonotonicTime.now
    let ending = await run.run()
    // The last answer may have come between a fault and the slowing down.
    apple.migrationAnswer = .tokens
    let seconds = Double((MonotonicTime.now - begin).wholeNanoseconds) / 1e9
    bar.clear()
    if let words = ending.words(of: run.plan, keys: side.configuration.keys(of:), at: .now) {
      throw Failure(description: words)
    }
    let census = try await side.store.census(of: side.plan)
    Terminal.say(
      "\(name)   \(census.done) users, \(census.allRefused) refused, \(run.progress.again) requests once more, in "
        + "\(Int(seconds.rounded())) s: \(Int((Double(run.progress.answered) / max(seconds, 0.001)).rounded())) a second"
    )
    return census
  }

  /// Whether every user came to exactly their account.
  private func check(_ count: Int, _ generated: TransferCensus, _ exchanged: TransferCensus) async throws -> Bool {
    var seen: Set<String> = []
    var last: Int64 = 0
    while true {
      let users = try await receiving.store.transferUsers(of: receiving.plan, in: .done, after: last, limit: 500)
      guard let end = users.last else { break }
      last = end.number
      for user in users {
        guard let number = Int(user.key), let subject = user.subject?.text,
          subject == apple.known(Self.person(number), to: Self.app).subject, seen.insert(subject).inserted
        else { throw Failure(description: "a user came to an account that is not theirs") }
      }
    }
    let refused = Int(generated.allRefused + exchanged.allRefused)
    let isWhole = seen.count + refused == count && refused == Self.withdrawn(count)
    Terminal.say(
      isWhole
        ? "Checked    \(seen.count) came to exactly their account, \(refused) stand on the list of refusals"
        : "Checked    \(count - seen.count - refused) of \(count) users are missing")
    return isWhole
  }
}
