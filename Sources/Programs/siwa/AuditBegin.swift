import AccountServices
import Configuration
import EventLoop
import TransparencyLog

/// `siwa audit begin`: begins the audit log in an empty directory.
struct AuditBegin: Command {
  static let name = "audit begin"
  static let summary = "Begins the audit log in audit-log.directory, once and for all."
  static let details = """
    Once, behind 'siwa audit create-key' and before the first siwa-audit-log, as the user that it runs as. The directory has
    to be empty; one that is missing is made. Where it lies on a volume of its own, mount that first: what is printed names
    the file system.

    siwa-audit-log itself begins no log: where the volume of its directory is not mounted, or the setting names another
    directory by mistake, it would begin a second one under the name and with the key of the first, and whoever has seen the
    first would find it rewritten. It is not ready then, and says why. Do not let a script run this at each start: it would
    bring that back.

    Exit codes: 0 begun, 1 not begun, because there is a log already, or what may be left of one, 2 the command line or the
    configuration makes no sense, 3 siwa-audit-log is running there, or the directory cannot be used.

    """
  static let examples = [
    CommandExample("siwa audit begin", "With /etc/siwa/siwa.yaml, which names directory, origin and key.")
  ]

  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode {
    do {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      let settings = try ConfigurationSchema.siwa.load(AuditLogSettings.self, from: sources).value
      return begin(settings.origin, in: settings.directory)
    } catch {
      return ExitCode(complainingOfLog: error)
    }
  }

  private func begin(_ origin: String, in directory: String) -> ExitCode {
    guard !origin.contains("://"), !origin.hasSuffix("/") else {
      Terminal.complain(
        "siwa: audit-log.origin: expected an address without scheme and without a slash at its end: it never changes")
      return .misuse
    }
    do throws(LogError) {
      guard try LogWriter.begin(in: directory, origin: origin) else {
        Terminal.complain("siwa: \(directory): the log of \(origin) has begun there already")
        return .failure
      }
      Terminal.say("the log of \(origin) begins in \(directory)\(MountPoint.words(of: directory))")
      return .success
    } catch {
      // A setting may have named another directory by mistake: the error is to say which.
      let path = error.path.hasPrefix(directory) ? error.path : "\(directory)/\(error.path)"
      return ExitCode(complainingOfLog: LogError(error.code, path, error.detail))
    }
  }
}
