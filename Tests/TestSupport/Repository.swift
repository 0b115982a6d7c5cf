import Foundation

/// Where the tests find what lies beside the sources.
public enum Repository {
  /// The folder that holds Package.swift.
  public static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  /// The bytes of a file of the repository, or beside it (`../shared/…`).
  public static func bytes(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: root + "/" + path)))
  }
}
