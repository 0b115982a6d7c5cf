import Foundation

extension RunningProgram {
  /// The names of its threads; those to which nobody gave one bear the program's. What ends meanwhile is not among them.
  public nonisolated func threadNames() throws -> [String] {
    let threads = "/proc/\(identifier)/task"
    return try FileManager.default.contentsOfDirectory(atPath: threads).compactMap {
      FileManager.default.contents(atPath: "\(threads)/\($0)/comm")
        .map { String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .newlines) }
    }
  }
}
