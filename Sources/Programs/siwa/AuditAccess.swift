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
  private let witnesses: [VerifierKey]
  private let quorum: Int?
  private let trustAnchor: String?

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
    witnesses = arguments.readAll(
      "--witness", "VKEY", .witnessKey, "The key of a witness that counts; may be repeated; otherwise audit.witnesses.")
    quorum = arguments.readIfPresent(
      "--quorum", "NUMBER", .integer(0...32, unit: "witnesses"),
      "How many of the witnesses have to have cosigned; without it, all.")
    trustAnchor = arguments.readIfPresent(
      "--trust", "FILE", .path, "PEM file with a certificate that is believed of the log's server, too.")
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
      let witnesses = witnesses.isEmpty ? settings?.witnesses ?? [] : witnesses
      guard let trust = LogTrust(by: key, witnesses, quorum: quorum ?? settings?.quorum) else { return .misuse }
      let place = place ?? settings?.log ?? ""
      let opened = try LogPlace(place, trustAnchor: trustAnchor)
      defer { opened.close() }
      return try await body(Log(source: opened.source, place: place, trust: trust, absent: settings?.absent ?? []))
    } catch {
      return ExitCode(complainingOfLog: error)
    }
  }

  /// The same with the log at its newest checkpoint.
  @Loop
  func open(_ body: @Loop (AuditLog, Log) async throws -> ExitCode) async -> ExitCode {
    await run { log in try await body(try await AuditLog.open(log.source, trusting: log.trust), log) }
  }

  /// What the configuration says; nil where the command line says it all, for who has no configuration.
  private func settings() throws(ConfigurationError) -> AuditSettings? {
    if place != nil, key != nil, options.file == nil, options.overrides.isEmpty { return nil }
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    return try ConfigurationSchema.siwa.load(AuditSettings.self, from: sources).value
  }
}

extension LogTrust {
  /// Trust in the log that a key names, if it has been cosigned by so many of the witnesses: all, where nothing is said.
  /// Nil where that makes no sense, which was said then.
  init?(by key: VerifierKey, _ witnesses: [VerifierKey], quorum: Int?) {
    do throws(LogError) {
      let policy = try WitnessPolicy(quorum ?? witnesses.count, of: witnesses)
      try self.init(origin: key.name, key: key, policy: policy)
    } catch {
      Terminal.complain("siwa: --witness, --quorum: \(error.detail)")
      return nil
    }
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
    default: self.init(complainingOf: error)
    }
  }
}
