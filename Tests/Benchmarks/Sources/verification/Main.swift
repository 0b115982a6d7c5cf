import AccountEvents
import AppleID
import Glibc

/// The verifier alone. Arguments: the key set as JSON, the audience, and its team; one body a line in the standard input.
///
/// Prints one JSON object: how many were accepted and refused, and the CPU time for each in microseconds.
@main struct Verification {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let audience = ClientID(arguments[2]), let team = TeamID(arguments[3]) else { exit(2) }
    let keys = try unsafe AppleKeySet(reading: [UInt8](arguments[1].utf8).span.bytes, at: .now, after: .none)
    let verifier = NotificationVerifier(
      issuer: "https://appleid.apple.com", teams: [audience: team], clockTolerance: .seconds(60))
    var bodies: [[UInt8]] = []
    while let line = readLine() { bodies.append([UInt8](line.utf8)) }

    var (accepted, refused) = (0, 0)
    let now = Timestamp.now
    let start = processorTime()
    while processorTime() - start < 5_000_000_000 {
      for body in bodies {
        let verdict = unsafe verifier.verify(body.span.bytes, at: now, keys: keys)
        if case .verified = verdict { accepted += 1 } else { refused += 1 }
      }
    }
    let each = Double(processorTime() - start) / 1000 / Double(accepted + refused)
    print(#"{"accepted": \#(accepted), "refused": \#(refused), "microseconds": \#(each)}"#)
  }

  /// Nanoseconds.
  static func processorTime() -> Int {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }
}
