import Configuration
import EventLoop
import Glibc

/// `siwa dev`: the whole way of a notification on one machine.
struct DevCommand: Command {
  static let name = "dev"
  static let summary =
    "Runs everything here: a simulated Apple, Kafka, all of siwa, and a shop in which one signs in with Apple."
  static let details = """
    Nothing is kept but what --once proves: certificates, keys and the embedded Kafka go when the command ends. The simulated Apple really
    signs, the ingress really verifies, the consumers really revoke and erase, from the shop's database; only trust anchors
    and addresses differ from production.

    Open the shop in a browser, Chromium or Firefox: sign in as anybody, see the account, change things at the simulated
    Apple, and watch what follows. The shop is an application like any other: docs/sign-in.md says how it is made.

    The embedded Kafka looks nothing up by time: what begins at a time, such as GET /v1/events?from=TIME, begins at the end.

    With --once the audit log has to say in the end that every obligation is met. The receipts of a deleted account and a
    bundle of the log stay in a folder, and docs/verify.py of the repository that siwa was built in checks them, which
    shares nothing with siwa; if it, Python or Python's library cryptography is not there, that is said, and no failure.

    Exit codes: 0 all went well, 1 something failed, or the proof does not hold, 2 the command line makes no sense.

    """
  static let examples = [
    CommandExample(
      "siwa dev", "Starts, sends a notification every few seconds, and tells what arrives; Ctrl-C ends it."),
    CommandExample(
      "siwa dev --once",
      "Ends with exit code 0 as soon as there was one event of every type, and what follows is done, and proven."
    ),
    CommandExample("siwa dev --kafka localhost:9092", "Publishes to a Kafka that runs already."),
  ]

  let kafka: String?
  let isOnce: Bool
  let interval: Duration
  let proof: String?

  init(reading arguments: inout CommandArguments) {
    kafka = arguments.readIfPresent(
      "--kafka", "HOST:PORT", .text(1...4096), "Brokers of a real Kafka; without it, one inside this process.")
    isOnce = arguments.flag(
      "--once", "Ends as soon as there was one event of every type, and what follows from each is done.")
    interval = arguments.read(
      "--every", "TIME", .duration(.milliseconds(100)...(.seconds(3600))), default: .seconds(5),
      "The pause between two notifications.")
    proof = arguments.readIfPresent(
      "--proof", "DIRECTORY", .path,
      "With --once: where the proof is left; without it, in a new folder siwa-proof-… below TMPDIR or /tmp.")
    if proof != nil, !isOnce { arguments.refuse("--proof goes with --once") }
  }

  func run() async -> ExitCode { await rehearse() }

  @Loop
  private func rehearse() async -> ExitCode {
    do {
      let rehearsal = try await Rehearsal(brokers: kafka, proof: proof)
      for line in rehearsal.whereabouts { Terminal.say(line) }
      let signals = try Signals([SIGINT, SIGTERM])
      let outcome = await withTaskGroup(of: ExitCode?.self) { group in
        group.addTask(executorPreference: Loop.executor) { [interval, isOnce] in
          await rehearsal.run(every: interval, once: isOnce)
        }
        group.addTask(executorPreference: Loop.executor) { [isOnce] in
          await signals.next() == nil ? nil : isOnce ? .failure : .success
        }
        let first = await group.next() ?? nil
        signals.close()
        group.cancelAll()
        return first ?? .failure
      }
      return outcome
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }
}
