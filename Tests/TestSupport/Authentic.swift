import Foundation

/// Notifications that Apple itself signed: `AUTHENTIC` names their folder, `../shared/authentic` where it is unset.
public enum Authentic {
  /// Whether they are there; a test that needs them is skipped visibly where they are not.
  public static var isThere: Bool { FileManager.default.fileExists(atPath: folder + "/notifications.json") }

  private static let folder =
    ProcessInfo.processInfo.environment["AUTHENTIC"] ?? Repository.root + "/../shared/authentic"

  /// The notifications in compact form.
  public static func notifications() throws -> [String] {
    struct Entry: Decodable { let jws: String }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: folder + "/notifications.json"))
    return try JSONDecoder().decode([Entry].self, from: bytes).map(\.jws)
  }
}
