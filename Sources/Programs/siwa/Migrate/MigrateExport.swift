import AccountEvents
import AccountServices
import AccountStore
import AppleID
import Configuration
import EventLoop
import TransparencyLog

/// `siwa migrate export`: what the sending team hands over.
struct MigrateExport: Command {
  static let name = "migrate export"
  static let summary =
    "Writes the users who have a transfer identifier into files for the recipient, with a signed manifest."
  static let details = """
    DIRECTORY gets, readable by this user alone:
      users.jsonl    {"key":"…","transfer_sub":"…"}, a line for each user
      users.csv      the same as CSV
      manifest.txt   plan, teams, app, how many users, and size and SHA-256 of each file: a signed note (C2SP)
    users.csv is for programs: a spreadsheet takes a key that begins with =, + or - for a formula. Such keys stand there as
    they are, or nobody would find their user by them; how many there are is said.
    Nothing else of anybody stands there: no sub, no address. With --age the two files are encrypted on the way to the disk
    (users.jsonl.age, users.csv.age) to that recipient by the program age of Debian's package of that name. Without it,
    encrypt what you send: with a transfer identifier Apple tells the recipient who somebody is.

    siwa migrate create-key makes the key that signs; give its public key (the vkey) to the recipient by another way than the
    files. The manifest is written last: where there is none, the export is not whole, and the same command again makes it.
    Users who get their identifier later go into another export. A user whose row in the store is damaged goes into none: they
    are counted, and siwa store integrity names them. What a run that was killed has left in DIRECTORY is removed, and said; so
    are the users of an export before it that were encrypted where these are not, or the other way round.

    Exit codes: 0 written; 1 not written, or some users wait still, were refused or are damaged; 2 the command line, the
    configuration or the store has to change first; 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa migrate export summer handover --key migrate-key", "In the clear, for a protected way."),
    CommandExample(
      "siwa migrate export summer handover --key migrate-key --age age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
      "Encrypted to the recipient."),
  ]

  private let plan: String
  private let directory: String
  private let keyFile: String
  private let recipient: String?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    directory = arguments.read("DIRECTORY", .path, "Where the files go; it is made where there is none.")
    keyFile = arguments.read("--key", "FILE", .path, "The private key that signs, from siwa migrate create-key.")
    recipient = arguments.readIfPresent("--age", "RECIPIENT", .text(1...2000), "Encrypts to this recipient of age's.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    let signer: NoteSigner
    do {
      let bytes = try InputFile.read(keyFile, limit: 4096)
      signer = try NoteSigner(
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").first.map(String.init) ?? "")
    } catch let error as LogError {
      Terminal.complain("siwa: \(keyFile): \(error.detail)")
      return .misuse
    } catch {
      Terminal.complain("siwa: \(error)")
      return .misuse
    }
    return await MigrateAccess.open(options, plan, .sending) { store, plan in
      let bar = ProgressBar("users")
      let export = TransferExport(
        of: plan, in: store, to: directory, encryptedTo: recipient,
        by: Age(ConfigurationSources.processEnvironment))
      let outcome = try await export.run(signedBy: signer, at: .now) { bar.note(done: $0, of: $1) }
      let manifest = outcome.manifest
      bar.clear()
      outcome.leftovers.forEach(MigrateAccess.complain(ofLeftover:))
      for path in outcome.outdated { Terminal.complain("siwa: \(path) was of an export before, and is removed") }
      if outcome.formulas > 0 {
        Terminal.complain(
          "siwa: \(outcome.formulas) keys begin with =, + or -: a spreadsheet takes them for formulas, and users.csv is for "
            + "programs")
      }
      MigrateAccess.complain(ofDamaged: outcome.damaged)
      Terminal.say("Exported   \(manifest.done)")
      for file in manifest.files { Terminal.say("File       \(directory)/\(file.name)  \(file.size) bytes") }
      Terminal.say("Manifest   \(directory)/\(TransferManifest.name)")
      Terminal.say("Signed by  \(signer.key.text)")
      let census = try await store.census(of: plan)
      Terminal.say(census.lines(of: plan).joined(separator: "\n"))
      Terminal.say("60 days    \(TransferWindow(plan).words(at: .now))")
      return outcome.damaged == 0 ? census.exit : .failure
    }
  }
}

/// `siwa migrate create-key`: the key that signs what is handed over.
struct MigrateCreateKey: Command {
  static let name = "migrate create-key"
  static let summary = "Makes the key that signs what is handed over, in a new file that only this user can read."
  static let details = """
    The file has the private key in the form of Go's sumdb/note. What is printed is the public key (a vkey), which the
    recipient names with --signer: hand it over by another way than the files. A file that is there already stays as it is.

    Exit codes: 0 made, 1 not made, 2 the command line makes no sense.

    """
  static let examples = [
    CommandExample("siwa migrate create-key example.com/transfer migrate-key", "Once for a transfer.")
  ]

  private let keyName: String
  private let file: String

  init(reading arguments: inout CommandArguments) {
    keyName = arguments.read("NAME", .text(1...255), "The key's name, such as example.com/transfer.")
    file = arguments.read("FILE", .path, "The new file, which siwa migrate export --key names.")
  }

  func run() async -> ExitCode { NoteKeyFile.create(named: keyName, "NAME", in: file) }
}
