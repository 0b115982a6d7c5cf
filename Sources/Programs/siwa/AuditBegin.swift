import AccountServices
import Configuration
import EventLoop
import TransparencyLog

/// `siwa audit begin`: begins the audit log in an empty directory.
struct AuditBegin: Command {
  static let name = "audit begin"
  static let summary = "Begins the audit log in audit-log.directory, once and for all."
  static let details = """
    Once, behind 'siwa audit create-key' and before the first siwa-audit-log, as the user that it runs as. A directory that
    is missing is made. A log that is there already stays as it is.

    siwa-audit-log itself begins no log: where the volume of its directory is not mounted, or the setting names another
    directory by mistake, it would begin a second one under the name and with the key of the first, and whoever has seen the
    first would find it rewritten. It is not ready then, and says why. Do not let a script run this at each start: it would
    bring that back.

    Exit codes: 0 begun, 1 not begun, because there is a log already or the directory is not as it has to be, 2 the command
    line or the configuration makes no sense, 3 siwa-audit-log is running there, or the disk failed.

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
      guard try LogWriter.begin(in: settings.directory, origin: settings.origin) else {
        Terminal.complain("siwa: \(settings.directory): the log of \(settings.origin) has begun there already")
        return .failure
      }
      Terminal.say("the log of \(settings.origin) begins in \(settings.directory)")
      return .success
    } catch {
      return ExitCode(complainingOfLog: error)
    }
  }
}
