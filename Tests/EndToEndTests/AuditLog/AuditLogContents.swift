import AccountEvents
import AccountServices
import EventLoop
import TestSupport
import Testing
import TransparencyLog

/// The entries of a log in a directory, counted.
@Loop
struct AuditLogContents: Equatable {
  /// How many obligations there are of each event.
  private(set) var obligations: [EventID: Int] = [:]
  /// How many effects there are of each outcome.
  private(set) var effects: [AccountOutcome: Int] = [:]
  /// All others: decisions and gaps.
  private(set) var others: [AuditEntry] = []
  /// How many entries there are.
  var size: Int { obligations.values.reduce(0, +) + effects.values.reduce(0, +) + others.count }

  /// Reads the log of that key at its newest checkpoint.
  init(of directory: String, _ key: VerifierKey) async throws {
    let trust = try LogTrust(origin: key.name, key: key, policy: .none)
    let log = try await AuditLog.open(LogDirectory(directory), trusting: trust)
    func count(_ index: UInt64, _ entry: AuditEntry) throws {
      switch entry {
      case .obligation(let obligation): obligations[obligation.id, default: 0] += 1
      case .effect(let effect): effects[try AccountOutcome(decoding: effect.outcome), default: 0] += 1
      case .decision, .gap: others.append(entry)
      }
    }
    try await log.entries(progress: { _, _ in }, count)
  }

  /// There is one obligation for each of these events, one effect for each of these outcomes, and nothing else.
  func expect(
    _ events: Set<EventID>, _ outcomes: Set<AccountOutcome>, _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(Set(obligations.keys) == events, comment, sourceLocation: sourceLocation)
    #expect(obligations.filter { $0.value != 1 }.prefix(5).isEmpty, comment, sourceLocation: sourceLocation)
    #expect(outcomes.subtracting(effects.keys).prefix(5).isEmpty, comment, sourceLocation: sourceLocation)
    #expect(Set(effects.keys).subtracting(outcomes).prefix(5).isEmpty, comment, sourceLocation: sourceLocation)
    #expect(effects.filter { $0.value != 1 }.prefix(5).isEmpty, comment, sourceLocation: sourceLocation)
    #expect(others.prefix(5).isEmpty, comment, sourceLocation: sourceLocation)
  }
}
