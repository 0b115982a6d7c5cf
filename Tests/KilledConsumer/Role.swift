import AccountEvents
import AccountServices
import AccountStore
import AppleID
import ConsumerSupport
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import Telemetry

/// Which consumer is killed, and what it is given to do.
@Loop
enum Role: String {
  /// One that does something outside, of which it leaves a line.
  case sample
  /// The token revoker. `apple` in its directory says where Apple is, `key.p8` is the team's key.
  case revoker
  /// The data eraser. `shop.sqlite` in its directory is a target, and the service that `service` names is another.
  case eraser

  var events: [AccountEvent] {
    switch self {
    // Two of one account, one that fails twice, one that never succeeds, one of no interest, one that is void, one more.
    case .sample:
      [
        .sample(1), .sample(2), .sample(3, of: "bob"), .sample(4, of: "cleo"), .sample(5, of: "dan", .accountDelete),
        .sample(7, of: "eve"), .sample(6, of: "eve"), .sample(8, of: "bob"), .sample(9, of: "cleo"), .sample(10),
      ]
    // One that is revoked at Apple, and its echo; two that Apple speaks of; one without a token.
    case .revoker:
      [
        .sample(1, .accountDeletionRequested), .sample(2), .sample(3, of: "bob"),
        .sample(4, of: "cleo", .accountDelete), .sample(5, of: "dan", .accountDeletionRequested),
      ]
    case .eraser:
      [
        .sample(1, .accountDelete), .sample(2, of: "bob"), .sample(3, of: "cleo", .accountDeletionRequested),
        .sample(4, .accountDelete),
      ]
    }
  }

  func makeConsumer(
    in directory: String, _ store: WatchedStore, _ steps: Steps, _ registry: MetricsRegistry
  ) throws -> EventConsumer {
    switch self {
    case .sample: sample(steps, directory)
    case .revoker: try revoker(directory, store)
    case .eraser: try eraser(directory, store, steps, registry)
    }
  }

  private nonisolated static let now = Timestamp.sample(1_800_000_000_000)
  private var logger: Logger { Logger(level: .error, format: .text, sink: LogSink { _ in }) }

  /// Does something outside with each event, of which it leaves a line.
  private func sample(_ steps: Steps, _ directory: String) -> EventConsumer {
    var consumer = EventConsumer(
      "killed", outcomes: ["done"],
      interest: { event in
        event.kind == .accountDelete ? nil : Interest(severity: 0, yieldsTo: [])
      },
      process: { delivery in
        let event = delivery.event
        steps.step()
        File.append("\(event.id)\n", to: "\(directory)/effects")
        steps.step()
        await Loop.nextTurn()
        if event.subject.text == "bob", delivery.attempt < 3 { throw ConsumerFailure.transient("busy") }
        if event.subject.text == "cleo" { throw ConsumerFailure.permanent("not-ours") }
        return Decision("done")
      })
    consumer.announce = { event, _, _ in
      ["revoked", "ended"].map { word in
        Announcement(topic: .outcomes, key: event.account.key, value: Array("\(event.id) \(word)".utf8), headers: [])
      }
    }
    return consumer
  }

  private func revoker(_ directory: String, _ store: WatchedStore) throws -> EventConsumer {
    let lines = try String(contentsOfFile: "\(directory)/apple", encoding: .utf8).split(separator: "\n").map(
      String.init)
    let pem = try String(contentsOfFile: "\(directory)/key.p8", encoding: .utf8)
    let event = AccountEvent.sample(1)
    guard lines.count == 3, let token = HTTPClientURL(lines[0]), let revocation = HTTPClientURL(lines[1]),
      let id = KeyID(lines[2])
    else { throw CocoaError(.fileReadCorruptFile) }
    let key = TeamKey(team: event.team, id: id, privateKey: try P256PrivateKey(pem: pem))
    let endpoints = AppleTokenEndpoints(
      token: token, revocation: revocation, client: client,
      secrets: ClientSecrets(
        keys: [event.audience: key], audience: "https://appleid.apple.com", lifetime: .seconds(3600),
        now: { Self.now }),
      deadline: .seconds(300))
    let apple = AppleRevocations(endpoints, clock: { .now }, random: { 1 }, logger: logger)
    return TokenRevoker(apple, ConsentGroups([:]), store: store).consumer
  }

  private func eraser(
    _ directory: String, _ store: WatchedStore, _ steps: Steps, _ registry: MetricsRegistry
  ) throws -> EventConsumer {
    let address = try String(contentsOfFile: "\(directory)/service", encoding: .utf8)
    guard let url = HTTPClientURL(address), let secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") else {
      throw CocoaError(.fileReadCorruptFile)
    }
    let (count, find) = (
      "SELECT count(*) FROM customer WHERE sub = $1", "SELECT count(*) FROM customer WHERE sub IS $1"
    )
    let shop = SQLiteTarget(
      path: "\(directory)/shop.sqlite",
      statements: SQLStatements(count: count, erase: ["DELETE FROM customer WHERE sub = $1"], find: find),
      foreignKeys: false, statementTimeout: .seconds(300))
    let newsletter = HTTPTarget(
      name: "newsletter", url: url, secret: secret, deadline: .seconds(300), client: client, now: { .now })
    let erasures = Erasures(
      [("shop", SteppingTarget(shop, steps)), ("newsletter", SteppingTarget(newsletter, steps))], store: store,
      concurrency: 8, registry: registry, logger: logger, now: { Self.now }, clock: { .now }, random: { 1 })
    let policy = ErasureSettings.Policy(
      consentRevoked: ["shop"], accountDelete: ["shop", "newsletter", ErasureSettings.accountStore])
    return DataEraser(
      [AccountEvent.sample(1).team: policy], erasures, groups: ConsentGroups([:]), patience: .zero, store: store,
      now: { Self.now }
    ).consumer
  }

  private var client: HTTPClient {
    HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300),
        maximumConnections: 4, maximumRequests: 16))
  }
}

/// A target with a step on either side of what it does.
final class SteppingTarget: ErasureTarget {
  private let target: any ErasureTarget
  private let steps: Steps

  init(_ target: any ErasureTarget, _ steps: Steps) { (self.target, self.steps) = (target, steps) }

  func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int? { try await target.count(order) }

  func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    steps.step()
    let result = try await target.erase(order)
    steps.step()
    return result
  }

  func check() async throws(ErasureFailure) {}
}
