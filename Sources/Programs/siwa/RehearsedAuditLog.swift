import AccountEvents
import AccountServices
import EventLoop
import HTTPClient
import Telemetry
import TransparencyLog

/// The audit log in this process, as its program would run it, and an auditor who reads it where it is published.
@Loop
final class RehearsedAuditLog {
  private static let pause = Duration.milliseconds(50)

  /// Where the log is served.
  let address: String
  /// The key that verifies it.
  let key: VerifierKey
  private let service: AuditLogService
  private let client: HTTPClient
  private let website: LogWebsite
  private let trust: LogTrust

  /// Why the log does not prove that all is done.
  enum Failure: Error, CustomStringConvertible {
    case incomplete(String)
    case withoutErasure(EventID)

    var description: String {
      switch self {
      case .incomplete(let words): "the audit log does not say that all is done: \(words)"
      case .withoutErasure(let event): "the audit log has no erasure that followed from \(event)"
      }
    }
  }

  /// The log that is configured so; the account store is there by now.
  init(_ configuration: AuditLogConfiguration, logger: Logger) async throws {
    key = configuration.audit.signer.key
    trust = try LogTrust(origin: key.name, key: key, policy: .none)
    service = try await AuditLogService(configuration, registry: MetricsRegistry(), logger: logger)
    address = "http://\(service.address)"
    client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-dev", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(5), maximumConnections: 1,
        maximumRequests: 1))
    guard let url = HTTPClientURL(address) else { preconditionFailure("an address of our own") }
    website = LogWebsite(url, client)
  }

  /// Serves until `drain` has ended.
  func run() async { await service.run() }

  /// Publishes what was read, and ends.
  func drain(within patience: Duration) async {
    await service.drain(within: patience)
    client.close()
  }

  /// Waits until the published log has these events and says that every obligation to these accounts is met, and writes
  /// into `directory` the receipts of one of the events, and a bundle. It is waited for as long as the log grows, and
  /// `patience` longer.
  func prove(
    _ events: Set<EventID>, of accounts: Set<AccountHash>, withReceiptsOf event: EventID, in directory: String,
    within patience: Duration
  ) async throws -> RehearsalProof {
    let log = try await complete(events, of: accounts, within: patience)
    let entries = try await log.entries(of: event) { _, _ in }
    let receipts = try await log.writeReceipts(of: entries, about: event, to: directory)
    for receipt in receipts {
      _ = try AuditReceipt.verify(InputFile.read(receipt, limit: LogProof.maximumByteCount), trusting: trust)
    }
    guard let erasure = zip(entries, receipts).first(where: { $0.0.entry.isErasure })?.1 else {
      throw Failure.withoutErasure(event)
    }
    let bundle = "\(directory)/audit.tar"
    try await log.writeBundle(.init(keys: nil, witnesses: [], appleKeys: nil), trusting: trust, to: bundle)
    return RehearsalProof(size: log.size, key: key, receipts: receipts, erasure: erasure, bundle: bundle)
  }

  /// The log as soon as it has all of the events, and nothing is open.
  private func complete(
    _ events: Set<EventID>, of accounts: Set<AccountHash>, within patience: Duration
  ) async throws -> AuditLog {
    var (size, end) = (UInt64(0), MonotonicTime.now + patience)
    var words = "it has no checkpoint"
    while true {
      if let log = try await open() {
        let (logged, open) = try await judge(log, accounts)
        if open.isEmpty, events.isSubset(of: logged) { return log }
        let silent = Set(open.flatMap(\.missing.names)).sorted().joined(separator: ", ")
        words =
          "it has \(events.intersection(logged).count) of \(events.count) events"
          + (open.isEmpty ? "" : ", and waits for \(silent)")
        if log.size > size { (size, end) = (log.size, .now + patience) }
      }
      guard .now < end else { throw Failure.incomplete(words) }
      try await Loop.sleep(for: Self.pause)
    }
  }

  /// The log at its newest checkpoint; nil before the first.
  private func open() async throws -> AuditLog? {
    guard try await website.read(LogPath.checkpoint, limit: SignedNote.maximumByteCount) != nil else { return nil }
    return try await AuditLog.open(website, trusting: trust)
  }

  /// Which events of these accounts the log has, and what is open of them. On a broker that others use, too, what is open
  /// of theirs is not asked.
  private func judge(
    _ log: AuditLog, _ accounts: Set<AccountHash>
  ) async throws -> (events: Set<EventID>, open: [Completeness.Open]) {
    var completeness = Completeness(
      of: ConcernedConsumers(without: []), in: AuditPeriod(from: nil, to: nil), within: .seconds(86_400))
    var events: Set<EventID> = []
    try await log.entries(
      progress: { _, _ in },
      { index, entry in
        if case .obligation(let obligation) = entry {
          guard accounts.contains(obligation.account) else { return }
          events.insert(obligation.id)
        }
        completeness.take(entry, at: index)
      })
    return (events, completeness.openObligations)
  }
}

extension AuditEntry {
  /// Whether it is what was erased.
  fileprivate var isErasure: Bool {
    guard case .effect(let effect) = self else { return false }
    return EffectFacts(effect).name == AccountOutcome.Name.accountErased.rawValue
  }
}
