import CLibFuzzer
import Glibc

/// `fuzz SUBJECT [libFuzzer's options and folders]`: looks for inputs that break a promise of the subject's or trap.
@main
struct Fuzz {
  /// What a call of libFuzzer's finds, which carries nothing but the bytes.
  nonisolated(unsafe) private static var subject = Subject.json
  /// Where libFuzzer starts this program again, to merge or to minimise, it does not repeat the subject.
  private static let variable = "FUZZ_SUBJECT"

  static func main() {
    var words = CommandLine.arguments
    if words.count > 1, Subject(rawValue: words[1]) != nil { unsafe setenv(variable, words.remove(at: 1), 1) }
    guard let subject = unsafe getenv(variable).flatMap({ unsafe Subject(rawValue: String(cString: $0)) }) else {
      print("usage: fuzz SUBJECT [options]\n\(Subject.allCases.map(\.rawValue).joined(separator: "\n"))")
      exit(2)
    }
    unsafe Self.subject = subject
    var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
    var count = CInt(words.count)
    let code = unsafe arguments.withUnsafeMutableBufferPointer { buffer in
      var start = buffer.baseAddress
      return unsafe LLVMFuzzerRunDriver(&count, &start) { start, count in
        unsafe Fuzz.check(UnsafeRawBufferPointer(start: start, count: count))
        return 0
      }
    }
    exit(code)
  }

  private static func check(_ input: UnsafeRawBufferPointer) {
    do {
      try unsafe subject.check(Array(input))
    } catch {
      // What libFuzzer takes for a find: it keeps the input.
      print("this does not hold: \(error)")
      fflush(nil)
      abort()
    }
  }
}
