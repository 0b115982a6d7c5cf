import AccountEvents
import AccountServices
import Configuration
import EventLoop
import Kafka

/// `siwa quarantine release`: publishes what was put aside.
struct QuarantineReleaseCommand: Command {
  static let name = "quarantine release"
  static let summary = "Publishes quarantined events that Apple signed for you and that are understood, however old."
  static let details = """
    What Apple signed is verified again, by the keys on apple.signing-keys.v1 and the teams of the configuration; its time
    may be over, but not lie ahead. The event is published on apple.account-events.v1 as the ingress would have done it, and
    once it is acknowledged, a note takes the letter's place. What cannot be verified, or is of a type or form that this
    version does not know, is said and stays; so does what a key has signed that Apple had withdrawn (retired-key), unless
    the letter or that cause is named.

    It may be broken off and run again: it goes on with what still waits. An event that was published and not yet noted is
    published once more, which is one effect: consumers know it by its id.

    Exit codes: 0 all are published, 1 no such letter waits, or some stay, 2 the command line or the configuration has to
    change first, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa quarantine release --letter 0/17", "The letter that 'list' calls so."),
    CommandExample(
      "siwa quarantine release --all --cause not-yet-valid --dry-run", "What a clock that was behind has put aside."),
    CommandExample(
      "siwa quarantine release --all --cause not-yet-valid --reason 'the clock of ingress-2 was behind'",
      "All of it, with the reason, which is kept."),
  ]

  private let access: LettersAccess
  private let selection: LetterSelection
  private let verdict: LetterVerdict

  init(reading arguments: inout CommandArguments) {
    access = LettersAccess(QuarantineRoom.self, reading: &arguments)
    selection = LetterSelection(reading: &arguments)
    verdict = LetterVerdict(.released, reading: &arguments)
  }

  func run() async -> ExitCode {
    let settings: NotificationSettings
    do throws(ConfigurationError) {
      let sources = access.options.sources(environment: ConfigurationSources.processEnvironment)
      settings = try ConfigurationSchema.siwa.load(NotificationSettings.self, from: sources).value
    } catch {
      Terminal.complain("\(error)")
      return .misuse
    }
    return await access.run { box, letters throws(KafkaError) in
      guard let all = selection.choose(from: letters, keepingOrder: false) else { return .failure }
      let report = verdict.report(of: all.count)
      // Whoever took a key away from Apple could sign with it: such a letter is released where it is meant, and not among
      // all others.
      let isDoubtful = { (letter: Letter) in
        !selection.isSpecific && letter.cause == QuarantinedEvent.Reason.retiredKey.rawValue
      }
      for letter in all where isDoubtful(letter) {
        report.note(letter, .left("\(letter.place) stays: its key was withdrawn; name it, or --cause retired-key"))
      }
      let release = QuarantineRelease(settings.verifier, keys: try await box.signingKeys())
      try await box.release(
        all.filter { !isDoubtful($0) }, of: letters, by: release, at: .now, verdict.isRehearsal ? nil : verdict.decision
      ) { report.note($0, $1) }
      return report.end()
    }
  }
}
