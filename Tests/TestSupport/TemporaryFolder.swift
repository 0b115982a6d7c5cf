import Foundation

/// A folder for one test, gone with the value.
public final class TemporaryFolder: Sendable {
  /// Where it is.
  public let path: String

  /// Makes an empty one.
  public init() throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("siwa-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    path = url.path
  }

  deinit {
    // Nobody is left to be told, and the system clears its temporary files itself.
    _ = try? FileManager.default.removeItem(atPath: path)
  }

  /// Writes a file into it and returns its path.
  @discardableResult
  public func write(_ text: String, to name: String) throws -> String {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
    return path + "/" + name
  }
}
