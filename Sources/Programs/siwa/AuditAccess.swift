import AccountEvents
import AccountServices
import Configuration
import EventLoop
import TransparencyLog

/// What the commands that read an audit log have in common: which log, and whose signatures are believed.
struct AuditAccess {
  let options: ConfigurationOptions
  private let place: String?
  private let key: VerifierKey?
  private let witnesses: WitnessArguments

  /// Where a log is, and what is known of it from elsewhere.
  struct Log {
    let source: any LogSource
    let place: String
    let trust: LogTrust
    /// The consumers that the configuration says are not run.
    let absent: ConsumerSet
  }

  init(reading arguments: inout CommandArguments) {
    place = arguments.readIfPresent(
      "--log", "LOG", .text(1...4096),
      "The log: its directory, a bundle, or the https address that it is published under; otherwise audit.log says.")
    key = arguments.readIfPresent(
      "--vkey", "VKEY", .logKey, "The log's first key, from somebody that you trust; otherwise audit.key says.")
    witnesses = WitnessArguments(reading: &arguments, otherwise: "audit.witnesses")
    options = ConfigurationOptions(reading: &arguments)
  }

  /// Runs `body` with the log. What goes wrong is said on standard error, and the exit code tells a script what it means.
  @Loop
  func run(_ body: @Loop (Log) async throws -> ExitCode) async -> ExitCode {
    do {
      let settings = try settings()
      guard let key = key ?? settings?.key else {
        Terminal.complain(
          "siwa: --vkey VKEY: missing, and so is audit.key: whatever is believed of a log follows from it")
        return .misuse
      }
      guard let trust = witnesses.trust(in: key, settings) else { return .misuse }
      let place = place ?? settings?.log ?? ""
      let opened = try LogPlace(place, trustAnchor: witnesses.trustAnchor)
      defer { opened.close() }
      return try await body(Log(source: opened.source, place: place, trust: trust, absent: settings?.absent ?? []))
    } catch {
      return ExitCode(complainingOfLog: error)
    }
  }

  /// The same with the log at its newest checkpoint, or at one that was cosigned no longer ago than `patience`.
  @Loop
  func open(
    within patience: Duration = Self.patience, _ body: @Loop (AuditLog, Log) async throws -> ExitCode
  ) async -> ExitCode {
    await run { known in
      let log = try await AuditLog.open(known.source, trusting: known.trust)
      try Self.judgeStandIn(log.checkpoint, within: patience)
      return try await body(log, known)
    }
  }

  /// How long what witnesses have not cosigned yet may be left out of what is said. Those that refuse a log, because it is
  /// another one than they saw, never cosign: they are not to look like slow ones for ever.
  static let patience = Duration.seconds(86_400)

  /// Says on standard error where what follows is not by the newest checkpoint, because witnesses have not cosigned that.
  /// Throws a `LogFinding` where they have not for longer than `patience`.
  static func judgeStandIn(
    _ checkpoint: VerifiedCheckpoint, within patience: Duration = Self.patience
  ) throws(LogFinding) {
    guard let newest = checkpoint.uncosignedSize, let cosigned = checkpoint.cosignedAt else { return }
    let (size, time) = (checkpoint.checkpoint.size, Timestamp(seconds: Int64(clamping: cosigned)))
    let words = "the newest checkpoint, of \(newest) entries, is not cosigned"
    guard let time, Timestamp.now - time <= min(patience, Self.patience) else {
      let age = time.map { ": \($0)" } ?? ""
      throw LogFinding(
        .notCosigned, LogPath.checkpoint, "\(words), and \(LogPath.witnessed), of \(size), is too old\(age)")
    }
    Terminal.complain("siwa: \(words): this is by \(LogPath.witnessed), of \(size), cosigned at \(time)")
  }

  /// What the configuration says; nil where the command line says it all, for who has no configuration.
  private func settings() throws(ConfigurationError) -> AuditSettings? {
    if place != nil, key != nil, options.file == nil, options.overrides.isEmpty { return nil }
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    return try ConfigurationSchema.siwa.load(AuditSettings.self, from: sources).value
  }
}

extension ExitCode {
  /// Says on standard error what is wrong with a log, or with what else was asked, and tells a script what it means.
  init(complainingOfLog error: any Error) {
    switch error {
    case let finding as LogFinding:
      Terminal.complain("siwa: NO: \(finding)")
      self = .failure
    case let error as LogError:
      Terminal.complain("siwa: \(error)")
      self = [.failed, .locked, .full].contains(error.code) ? .unreachable : .failure
    case let fault as InputFile.Fault:
      Terminal.complain("siwa: \(fault)")
      self = .unreachable
    case let fault as OutputFile.Fault:
      Terminal.complain("siwa: \(fault)")
      self = .unreachable
    default: self.init(complainingOf: error)
    }
  }
}
