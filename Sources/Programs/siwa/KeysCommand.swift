import AccountEvents
import AccountServices
import AppleID
import Configuration
import EventLoop
import HTTPClient
import JSON

/// `siwa keys`: which of Apple's keys are held, since when, and what Apple has now.
struct KeysCommand: Command {
  static let name = "keys"
  static let summary = "Says which of Apple's keys are held, since when, and with --fetch what Apple has now."
  static let details = """
    A notification is believed only if one of these keys signed it. The ingress fetches them from apple.keys, renews them
    ahead of time, keeps them in apple.keys-file over restarts, and goes on with them while Apple cannot be reached or
    answers anything else. --fetch asks Apple once and changes nothing: the file is the ingress's own. Run it as the user
    that the ingress runs as: a file that somebody else could write is not believed.

    With --fetch each key is
      same: held, and Apple has it;
      new:  Apple has it, and the ingress will when it next fetches, or when something names this key;
      gone: held, and Apple has it no more. For a day and ten minutes from the next fetch on it is believed for what it
            signed until Apple was last seen to have it. The key stays on the topic apple.signing-keys.v1, if anything was
            verified with it.

    Exit codes: 0 keys are held (with --fetch: Apple answered with keys to be believed), 1 they are not, 2 the command
    line or the configuration has to change first.

    """
  static let examples = [
    CommandExample("siwa keys", "Says what the ingress holds, with /etc/siwa/siwa.yaml and the variables SIWA_…."),
    CommandExample(
      "siwa keys --fetch", "Asks Apple too: the thing to do when notifications are refused by 'unknown-key'."),
    CommandExample("siwa keys --fetch --json --config siwa.yaml", "The same for another program to read."),
  ]

  let options: ConfigurationOptions
  let fetches: Bool
  let isJSON: Bool

  init(reading arguments: inout CommandArguments) {
    options = ConfigurationOptions(reading: &arguments)
    fetches = arguments.flag("--fetch", "Asks Apple now, and compares.")
    isJSON = arguments.flag("--json", "Prints one JSON object.")
  }

  func run() async -> ExitCode { await tell() }

  @Loop
  private func tell() async -> ExitCode {
    do {
      let settings = try ConfigurationSchema.siwa.load(
        AppleSettings.self, from: options.sources(environment: ConfigurationSources.processEnvironment)
      ).value
      let (held, isWell) = await held(settings)
      guard isWell || fetches else { return .failure }
      var listing = KeysListing(source: settings.keysURL.text, file: settings.keysFile, held: held, now: .now)
      if fetches {
        let answer = try await AppleKeysEndpoint(settings, userAgent: "siwa-keys").fetch().body
        listing.compare(
          with: try unsafe AppleKeySet(reading: answer.span.bytes, at: .now, after: held?.set ?? .none))
      }
      Terminal.say(isJSON ? String(decoding: listing.json.bytes, as: UTF8.self) : listing.text)
      return isWell && (fetches || held != nil) ? .success : .failure
    } catch let faults as ConfigurationError {
      Terminal.complain("\(faults)")
      return .misuse
    } catch {
      Terminal.complain("siwa: Apple's keys: \(error)")
      return .failure
    }
  }

  /// What the file holds, and whether all is well with it: if not, what Apple has is all the more worth knowing.
  private func held(_ settings: AppleSettings) async -> (KeysListing.Held?, isWell: Bool) {
    do {
      return (try await AppleKeysCache(settings).load(), true)
    } catch {
      Terminal.complain("siwa: \(settings.keysFile): \(error)")
      return (nil, false)
    }
  }
}
