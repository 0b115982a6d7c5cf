import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import TransparencyLog

/// `siwa migrate import`: what the receiving team has been handed.
struct MigrateImport: Command {
  static let name = "migrate import"
  static let summary = "Takes over what the sending team has exported: once it is theirs, whole, and new."
  static let details = """
    DIRECTORY has what siwa migrate export wrote: manifest.txt beside users.jsonl, or users.jsonl.age. Checked are the
    signature, that both teams and the app are the plan's, size and SHA-256 of the file, every line, and how many there are;
    nothing is added before all of it was. A file is imported once: the same again is refused. Who is there already, from
    another file, stays as they are. A line that names somebody by another key than the plan has, or by a key under which it
    has somebody else, is not taken: such lines are counted, and the first 20 named. Have the sending team say which is right,
    and hand the others over once more, under their own keys. Of two plans of one transfer only the first takes users.

    Broken off, the same command completes it. It works before the transfer is accepted, too.

    Exit codes: 0 all users are there; 1 the files are not what they have to be, or name somebody by two keys, or two
    people by one, which is said; 2 the command line, the configuration or the store has to change first; 3 the store
    cannot be reached at the moment.

    """
  static let examples = [
    CommandExample(
      "siwa migrate import spring handover --signer example.com/transfer+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
      "With the sending team's public key, as they told it."),
    CommandExample(
      "siwa migrate import spring handover --signer example.com/transfer+530d… --identity age.key",
      "Decrypts with age's identity in the file age.key."),
  ]

  private let plan: String
  private let directory: String
  private let signer: VerifierKey?
  private let identity: String?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    directory = arguments.read("DIRECTORY", .path, "Where the files lie.")
    let text = arguments.read(
      "--signer", "VKEY", .text(1...1000), "The sending team's public key, as siwa migrate create-key has printed it.")
    identity = arguments.readIfPresent("--identity", "FILE", .path, "The identity with which age decrypts the users.")
    options = ConfigurationOptions(reading: &arguments)
    do throws(LogError) { signer = try VerifierKey(text) } catch {
      signer = nil
      arguments.refuse("--signer: \(error.detail)")
    }
  }

  func run() async -> ExitCode {
    guard let signer else { return .misuse }
    return await MigrateAccess.open(options, plan, .receiving) { store, plan in
      let bar = ProgressBar("users")
      let users = TransferImport(
        into: plan, in: store, from: directory, signedBy: signer, decryptedWith: identity,
        by: Age(ConfigurationSources.processEnvironment))
      let outcome = try await users.run(at: .now) { bar.note(done: $0, of: $1) }
      bar.clear()
      MigrateAccess.complain(of: outcome.faults)
      let manifest = outcome.manifest
      Terminal.say("Exported   \(manifest.exportedAt) by \(manifest.sender), plan \(manifest.plan)")
      Terminal.say("In it      \(manifest.done)")
      Terminal.say("New        \(outcome.new)")
      Terminal.say("Two keys   \(outcome.faults.second)\nTwo people \(outcome.faults.shared)")
      Terminal.say("To come    \(manifest.waiting) had no identifier yet")
      for (reason, count) in manifest.refused.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
        Terminal.say("Refused    \(count) at the sending team: \(reason.rawValue)")
      }
      Terminal.say(try await store.census(of: plan).lines(of: plan).joined(separator: "\n"))
      Terminal.say("60 days    \(TransferWindow(plan).words(at: .now))")
      return outcome.faults.count == 0 ? .success : .failure
    }
  }
}
