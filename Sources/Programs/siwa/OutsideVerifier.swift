import Configuration
import EventLoop
import Glibc
import TransparencyLog

/// docs/verify.py, run by the Python of this machine: a verifier that shares nothing with siwa.
struct OutsideVerifier {
  private static let python = "python3"
  /// Where the script lies, in the repository.
  private static let path = "docs/verify.py"
  private static let patience = Duration.seconds(60)
  private static let longestAnswer = 1 << 20

  /// The script.
  let script: String

  /// Why nobody can be asked, which says nothing about what was to be verified.
  struct Absence: Error, CustomStringConvertible {
    let description: String
  }

  /// Why something that was to be verified was not.
  struct Refusal: Error, CustomStringConvertible {
    let description: String
  }

  /// The script of the repository in which this program was built, if Python and its library are there. Throws `Absence`.
  init() async throws {
    guard let script = Self.locate() else {
      throw Absence(description: "\(Self.path) does not lie in a folder above this program")
    }
    self.script = script
    do throws(ExternalProgram.Failure) {
      _ = try await Self.run(["-c", "import cryptography.hazmat.primitives.asymmetric.ed25519"])
    } catch {
      switch error {
      case .system: throw Absence(description: "there is no \(Self.python)")
      default: throw Absence(description: "\(Self.python) has no module cryptography (Debian: python3-cryptography)")
      }
    }
  }

  /// Has a receipt or a log verified. Throws `Refusal`.
  func verify(_ kind: String, _ file: String, by key: VerifierKey) async throws {
    do throws(ExternalProgram.Failure) {
      _ = try await Self.run(Self.words(script, kind, file, by: key))
    } catch {
      throw Refusal(description: "\(script) does not verify \(file): \(error)")
    }
  }

  /// The line that has a file verified; with `script` nil, as it is said from within the repository.
  static func line(_ script: String?, _ kind: String, _ file: String, by key: VerifierKey) -> String {
    ([python] + words(script ?? path, kind, file, by: key)).joined(separator: " ")
  }

  private static func words(_ script: String, _ kind: String, _ file: String, by key: VerifierKey) -> [String] {
    [script, kind, file, "--vkey", key.text]
  }

  /// The script in the nearest folder above this program's file that has it: programs lie in `.build` or `build`.
  private static func locate() -> String? {
    var link = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    let count = unsafe readlink("/proc/self/exe", &link, link.count - 1)
    guard count > 0 else { return nil }
    var folder = String(decoding: link.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)[...]
    while let slash = folder.lastIndex(of: "/") {
      folder = folder[..<slash]
      let script = "\(folder)/\(path)"
      if unsafe access(script, R_OK) == 0 { return script }
    }
    return nil
  }

  private static func run(_ arguments: [String]) async throws(ExternalProgram.Failure) -> [UInt8] {
    let program = ExternalProgram([python] + arguments, environment: ConfigurationSources.processEnvironment)
    let thread = BlockingThread(named: "python")
    defer { thread.close() }
    return try await thread.run { () -> Result<[UInt8], ExternalProgram.Failure> in
      Result { () throws(ExternalProgram.Failure) in
        try program.answer(to: [], upTo: longestAnswer, within: patience)
      }
    }.get()
  }
}
