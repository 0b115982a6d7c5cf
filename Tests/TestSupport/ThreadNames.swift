import Foundation

extension RunningProgram {
  /// The names of its threads; those to which nobody gave one bear the program's.
  public nonisolated func threadNames() throws -> [String] {
    let threads = "/proc/\(identifier)/task"
    return try FileManager.default.contentsOfDirectory(atPath: threads).map {
      try String(contentsOfFile: "\(threads)/\($0)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
    }
  }
}
