import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Glibc

/// `siwa accounts import`: nobody starts with an empty store.
struct AccountsImport: Command {
  static let name = "accounts import"
  static let summary = "Brings the sign-ins and refresh tokens that an application has kept into the account store."
  static let details = """
    Reads JSON Lines from the standard input, one sign-in each:
      {"sub":"000768.6166f031167141e6.1521","client_id":"com.example.app","signed_in_at":"2026-01-31T12:00:00Z",
       "refresh_token":"r4f…"}                                                       (on one line)
      sub            the person, as Apple names them to the team
      client_id      the App ID or Services ID that the person signed in to, and that the token was issued to
      signed_in_at   when the person signed in last: seconds since 1970, or a time in RFC 3339's form. What happened before
                     does not touch the token; so where it is not known, take the earliest time that it can have been
      refresh_token  what Apple gave for the sign-in; left out or null where none was kept
      team           may be there, and then has to be the client's
    Several lines of one person are several sign-ins: each app's token is a line.

    Tokens are encrypted before they are written, and stand nowhere else; no line is repeated in what this command says, but
    for its number. A line that is no sign-in is named with the reason and passed over. A token whose authorization was over
    before it came, because the account was erased or a deletion ended its tokens since, is not kept, which is said.

    Each line is durable once it counts, and the same line again changes nothing. Broken off, the same command goes on from
    the beginning or, with --from-line, from where it says that it was. Programs may run meanwhile. Destroy the file
    afterwards: it holds what opens your users' authorizations.

    Exit codes: 0 every line is in the store; 1 some lines are no sign-ins; 2 the command line, the configuration or the
    store has to change first, or the input cannot be read, or ends before the line to begin with; 3 the store cannot be
    reached at the moment.

    """
  static let examples = [
    CommandExample("siwa accounts import --dry-run < accounts.jsonl", "Whether all lines can be read; needs no store."),
    CommandExample(
      "psql -At -c \"SELECT json_build_object('sub', apple_sub, …) FROM users\" | siwa accounts import",
      "Straight from a database: no file to destroy."),
    CommandExample("siwa accounts import --from-line 250001 < accounts.jsonl", "Goes on after it was broken off."),
  ]

  /// So many lines are read at once.
  private static let page = 1024

  private let isRehearsal: Bool
  private let first: Int64
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    isRehearsal = arguments.flag("--dry-run", "Reads all lines, and says what is wrong with them; changes nothing.")
    first = Int64(
      arguments.readIfPresent(
        "--from-line", "NUMBER", .integer(1...1_000_000_000_000, unit: "lines"),
        "Passes over the lines before this one, counted from 1.") ?? 1)
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    if isatty(STDIN_FILENO) == 1 { Terminal.complain("siwa: reads sign-ins from the standard input; see --help") }
    let teams: [ClientID: TeamID]
    do throws(ConfigurationError) {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      teams = try ConfigurationSchema.siwa.load(TeamsSettings.self, from: sources).value.teams
    } catch {
      Terminal.complain("\(error)")
      return .misuse
    }
    if isRehearsal { return await take(into: nil, teams) ?? .success }
    var exit: ExitCode?
    let opened = await StoreAccess.open(options) { store throws(AccountStoreError) in
      exit = await take(into: store, teams)
      return .success
    }
    return exit ?? opened
  }

  @Loop
  private func take(into store: (any AccountStore)?, _ teams: [ClientID: TeamID]) async -> ExitCode? {
    let input = StandardInput(longestLine: ImportedAccount.longestLine)
    do throws(LineReader.Fault) { try await input.skip(first - 1) } catch { return refuse(error, input) }
    guard input.count == first - 1 else {
      Terminal.complain("siwa: --from-line \(first): the input has \(input.count) lines")
      return .misuse
    }
    let bar = ProgressBar("lines")
    let accounts = AccountImport(
      into: store, teams: teams, skipped: input.count, now: { .now },
      tell: { line, note in
        bar.clear()
        Terminal.complain("siwa: line \(line): \(note)")
      })
    do {
      try await accounts.run {
        bar.note(done: accounts.progress.lines, of: nil)
        return try await input.next(Self.page)
      }
    } catch {
      bar.clear()
      tell(accounts.progress)
      if store != nil { Terminal.complain("siwa: go on with --from-line \(accounts.nextLine)") }
      if let fault = error as? LineReader.Fault { return refuse(fault, input) }
      Terminal.complain("siwa: \(error)")
      return (error as? AccountStoreError)?.code == .unavailable ? .unreachable : .failure
    }
    bar.clear()
    tell(accounts.progress)
    return accounts.progress.refused == 0 ? .success : .failure
  }

  /// Says what is wrong with the line after those that were read.
  @Loop
  private func refuse(_ fault: LineReader.Fault, _ input: StandardInput) -> ExitCode {
    Terminal.complain("siwa: line \(input.count + 1): \(fault.words(limit: ImportedAccount.longestLine))")
    return .misuse
  }

  private func tell(_ progress: AccountImport.Progress) {
    Terminal.say(
      """
      Lines     \(progress.lines)
      Sign-ins  \(progress.accounts)
      Tokens    \(progress.tokens)
      Ended     \(progress.ended)
      Refused   \(progress.refused)
      """ + (isRehearsal ? "\nNothing was changed" : ""))
  }
}
