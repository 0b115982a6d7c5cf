import AccountEvents
import AccountServices
import Configuration
import EventLoop
import Kafka

/// What the commands about a spool have in common: where it is.
struct SpoolAccess {
  let options: ConfigurationOptions
  private let directory: String?

  init(reading arguments: inout CommandArguments) {
    options = ConfigurationOptions(reading: &arguments)
    directory = arguments.readIfPresent(
      "--directory", "DIRECTORY", .path, "The spool's directory; without it, ingress.spool.directory is read.")
  }

  /// Where the spool is, as the command line or the configuration says.
  func folder() throws(ConfigurationError) -> String {
    if let directory { return directory }
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    return try ConfigurationSchema.siwa.load(SpoolSettings.self, from: sources).value.directory
  }

  /// Runs what only reads, on a thread of its own: the process that has the spool goes on.
  func look<Value: Sendable>(
    _ body: @escaping @Sendable (String) throws(SpoolError) -> Value, then tell: (Value, String) -> ExitCode
  ) async -> ExitCode {
    let folder: String
    do throws(ConfigurationError) { folder = try self.folder() } catch {
      Terminal.complain("\(error)")
      return .misuse
    }
    let thread = BlockingThread(named: "spool-report")
    defer { thread.close() }
    let result = await thread.run { Result { () throws(SpoolError) in try body(folder) } }
    switch result {
    case .success(let value): return tell(value, folder)
    case .failure(let error):
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }

  /// Runs `body` with the spool, which no process may have meanwhile.
  @Loop
  func withStopped(_ body: @Loop (StoppedSpool) async throws(SpoolError) -> ExitCode) async -> ExitCode {
    do {
      let spool = try await StoppedSpool.open(try folder())
      let result: Result<ExitCode, SpoolError>
      do throws(SpoolError) { result = .success(try await body(spool)) } catch { result = .failure(error) }
      try await spool.close()
      return try result.get()
    } catch let error as ConfigurationError {
      Terminal.complain("\(error)")
      return .misuse
    } catch let error as SpoolError where error.code == .inUse {
      Terminal.complain("siwa: the spool in \(error.directory): the ingress has it: end that one first")
      return .failure
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }
}

/// Which records an operator means.
struct RecordSelection {
  private let sequences: [Int64]
  private let isAll: Bool

  init(reading arguments: inout CommandArguments, allowingAll: Bool) {
    sequences = arguments.readAll(
      "--record", "NUMBER", .integer(1...Int.max), "A record as 'list' numbers it; may be repeated."
    ).map { Int64($0) }
    isAll = allowingAll ? arguments.flag("--all", "All records that wait.") : false
    if sequences.isEmpty != isAll {
      arguments.refuse(allowingAll ? "say --record NUMBER or --all" : "say --record NUMBER")
    }
  }

  /// What was named.
  var named: Set<Int64> { Set(sequences) }

  /// Those that are meant, of all that there are; nil where one of them is not there, which was said then.
  func choose(from all: [StoppedSpool.Place]) -> [Int64]? {
    let there = all.map(\.sequence)
    if isAll { return there }
    if let missing = named.subtracting(there).min() {
      Terminal.complain("siwa: no record \(missing) waits")
      return nil
    }
    return there.filter(named.contains)
  }
}

extension SpooledRecord {
  private static let personal: Set<String> = ["ce_subject", "ce_partitionkey", EventRecord.signatureHeader]

  /// The record in lines; what names a person only where that is asked for.
  func lines(personal: Bool) -> [String] {
    var lines = ["record: \(sequence)", "since: \(since)", "topic: \(record.topic)"]
    if personal, let key = record.key { lines.append("key: \(String(printable: key))") }
    for header in record.headers where personal || !Self.personal.contains(header.name) {
      lines.append("\(String(printable: header.name)): \(String(printable: header.value))")
    }
    lines.append(personal ? String(printable: record.value) : "value: \(record.value.count) bytes")
    return lines
  }
}
