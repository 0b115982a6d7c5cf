import Glibc
import TestSupport
import Testing

/// What a program believes of the time and of its disk, and whom it can answer, as `Preloaded/faults.c` tells it.
@safe final class PreloadedFaults {
  /// How far the program's wall clock is off.
  var clockOffset = Duration.zero {
    didSet { unsafe memory[0] = clockOffset.components.seconds * 1_000_000_000 }
  }
  /// Whether files in the folder can no longer grow.
  var isDiskFull = false {
    didSet { unsafe memory[1] = isDiskFull ? 1 : 0 }
  }
  /// The port at which the program has its next answer in hand, and never sends it; nil where it answers.
  var silentPort: UInt16? {
    didSet { unsafe memory[2] = Int64(silentPort ?? 0) }
  }
  /// Whether it has come to that.
  var isSilent: Bool { unsafe memory[3] > 0 }
  /// What the program's environment needs.
  let environment: [String: String]
  private let memory: UnsafeMutablePointer<Int64>

  /// Builds what is loaded into the program. The disk is that of `folder`.
  init(files: TemporaryDirectory, folder: String) async throws {
    let (library, shared) = (files.path + "/faults.so", files.write("faults", [UInt8](repeating: 0, count: 32)))
    let build = try await RunningProgram.finish(
      path: "clang",
      ["-shared", "-fPIC", "-O2", "-o", library, Repository.root + "/Tests/EndToEndTests/Preloaded/faults.c", "-ldl"])
    try #require(build.end == .exit(0), "\(build.errors)")
    environment = ["LD_PRELOAD": library, "FAULTS": shared, "FAULTS_FOLDER": folder]
    let file = unsafe open(shared, O_RDWR | O_CLOEXEC)
    defer { close(file) }
    let mapped = unsafe mmap(nil, 32, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    let address = try unsafe #require(mapped, "\(shared) cannot be mapped")
    unsafe memory = address.assumingMemoryBound(to: Int64.self)
  }

  deinit { unsafe munmap(memory, 32) }
}
