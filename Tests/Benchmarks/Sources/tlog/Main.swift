import COpenSSL
import Glibc
import TransparencyLog

/// What it costs to write a transparency log and to verify it as a whole.
///
///     tlog append DIRECTORY COUNT BYTES EACH     COUNT entries of some BYTES, a published checkpoint after EACH of them
///     tlog verify DIRECTORY                      beside the bare SHA-256 of as many bytes and nodes
///     tlog command DIRECTORY SIWA                the same with `siwa audit verify`, the program at SIWA
@main
struct TransparencyLogBenchmark {
  /// A key that everybody knows, so that a log can be verified in another run.
  private static let key = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
  /// The log's name, which is that key's: `siwa audit verify` knows a log by its key.
  private static let origin = "PeterNeumann"

  static func main() async {
    let words = CommandLine.arguments
    do {
      let signer = try NoteSigner(key)
      switch words.dropFirst().first {
      case "append" where words.count == 6:
        guard let count = UInt64(words[3]), let size = Int(words[4]), let each = UInt64(words[5]) else { exit(2) }
        _ = try LogWriter.begin(in: words[2], origin: origin)
        try await append(count, size, each, to: LogWriter(opening: words[2], origin: origin), signer)
      case "verify" where words.count == 3: try await verify(LogDirectory(words[2]), signer.key)
      case "command" where words.count == 4:
        try await verify(LogDirectory(words[2]), signer.key, with: SpawnedProgram(words[3]))
      default:
        print("tlog append DIRECTORY COUNT BYTES EACH\ntlog verify DIRECTORY\ntlog command DIRECTORY SIWA")
        exit(2)
      }
    } catch {
      print(error)
      exit(1)
    }
  }

  private static func append(
    _ count: UInt64, _ size: Int, _ each: UInt64, to writer: LogWriter, _ signer: NoteSigner
  ) async throws {
    var entry = [UInt8](repeating: UInt8(ascii: "e"), count: size + 8)
    let end = writer.size + count
    let start = Times.now
    while writer.size < end {
      for _ in 0..<min(each, end - writer.size) {
        withBytes(of: writer.size) { for (place, byte) in $0.enumerated() { entry[place] = byte } }
        entry[8] = UInt8(truncatingIfNeeded: writer.size >> 3)
        _ = try writer.append(Array(entry.prefix(size + Int(writer.size % 9))))
      }
      try writer.publish(await SignedNote.sign(try writer.flush().text, with: signer))
    }
    let spent = Times.now - start
    print("appended \(count) entries, a checkpoint after each \(each)")
    print("  \(Int(Double(count) / spent.wall)) a second, \(Int(Double(count) / spent.cpu)) a second and core")
    print("  \(tenths(spent.cpu * 1e6 / Double(count))) µs of CPU an entry, \(peakMegabytes) MB at most")
  }

  private static func withBytes(of number: UInt64, _ body: ([UInt8]) -> Void) {
    body((0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) })
  }

  private static func verify(_ log: LogDirectory, _ key: VerifierKey) async throws {
    let trust = try LogTrust(origin: origin, key: key, policy: .none)
    var spent: [Times] = []
    for _ in 0..<3 {
      let start = Times.now
      let verdict = try await LogView.verify(
        log, trusting: trust, since: [], progress: { _, _ in }, entry: { _, _ in })
      spent.append(Times.now - start)
      _ = try verdict.get()
    }
    let peak = peakMegabytes
    let (sizes, bytes) = try await contents(log, trust)
    let bare = (0..<3).map { _ in unsafe bytes.withUnsafeBufferPointer { unsafe hash(sizes, $0) } }
    say(spent, bare, peak, sizes.count, bytes.count - sizes.count)
  }

  /// The program's and the bare rounds take turns, so that what slows one down slows the other, too.
  private static func verify(_ log: LogDirectory, _ key: VerifierKey, with program: SpawnedProgram) async throws {
    let trust = try LogTrust(origin: origin, key: key, policy: .none)
    let words = ["audit", "verify", "--log", log.path, "--vkey", key.text]
    // First, as the kernel counts among what a program had at most what its parent had when it was started.
    let peak = try program.run(words).peakMegabytes
    let (sizes, bytes) = try await contents(log, trust)
    var (ours, bare) = ([Times](), [Times]())
    for _ in 0..<5 {
      ours.append(try program.run(words).spent)
      bare.append(unsafe bytes.withUnsafeBufferPointer { unsafe hash(sizes, $0) })
    }
    say(ours, bare, peak, sizes.count, bytes.count - sizes.count)
  }

  /// What is hashed for the leaves, one behind the other, and how long each is.
  private static func contents(_ log: LogDirectory, _ trust: LogTrust) async throws -> (sizes: [Int], bytes: [UInt8]) {
    var (sizes, bytes) = ([Int](), [UInt8]())
    _ = try await LogView.verify(
      log, trusting: trust, since: [], progress: { _, _ in },
      entry: { _, entry in
        sizes.append(entry.byteCount + 1)
        bytes.append(0)
        unsafe entry.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
      })
    return (sizes, bytes)
  }

  private static func say(_ spent: [Times], _ bare: [Times], _ peak: Int, _ count: Int, _ size: Int) {
    let (ours, theirs) = (median(spent), median(bare))
    print("verified \(count) entries of \(size) bytes")
    print("  \(tenths(ours.wall * 1e3)) ms, \(tenths(ours.cpu * 1e3)) of CPU, \(peak) MB at most")
    print("  \(tenths(theirs.cpu * 1e3)) ms of CPU for the bare SHA-256 of as many bytes and nodes")
    print("  ratio \(Double(Int(ours.cpu / theirs.cpu * 100)) / 100)")
  }

  /// Hashes the messages that lie one behind the other in memory, and one for each node over them.
  private static func hash(_ sizes: [Int], _ bytes: UnsafeBufferPointer<UInt8>) -> Times {
    var (state, digest, place) = (SHA256_CTX(), [UInt8](repeating: 0, count: 65), 0)
    func hash(_ message: UnsafePointer<UInt8>?, _ count: Int) {
      unsafe copenssl_sha256_init(&state)
      unsafe copenssl_sha256_update(&state, message, count)
      unsafe copenssl_sha256_final(&state, &digest)
    }
    let start = Times.now
    for size in sizes {
      unsafe hash(bytes.baseAddress?.advanced(by: place), size)
      place += size
    }
    let node = [UInt8](repeating: 1, count: 65)
    for _ in sizes.dropLast() { unsafe hash(node, node.count) }
    return Times.now - start
  }

  private static func median(_ times: [Times]) -> Times { times.sorted { $0.cpu < $1.cpu }[times.count / 2] }

  private static func tenths(_ number: Double) -> Double { Double(Int(number * 10)) / 10 }

  /// What the process has had in memory at most.
  private static var peakMegabytes: Int {
    var usage = rusage()
    unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss / 1024
  }
}

/// Seconds on the clock, and of CPU.
struct Times {
  let wall, cpu: Double

  static var now: Times { Times(wall: seconds(CLOCK_MONOTONIC), cpu: seconds(CLOCK_PROCESS_CPUTIME_ID)) }

  static func - (left: Times, right: Times) -> Times { Times(wall: left.wall - right.wall, cpu: left.cpu - right.cpu) }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
