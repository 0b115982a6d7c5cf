import Foundation
public import Testing

/// Notifications that Apple itself signed, and Apple's keys of those years: see `Authentic/README.md`.
public struct Authentic: Decodable, Sendable, CustomTestStringConvertible {
  /// The notification in compact form.
  public let jws: String
  /// A moment at which it is valid, in seconds since 1970.
  public let moment: Int64
  /// The app that Apple addressed.
  public let audience: String
  /// The type of its one event.
  public let type: String

  private enum CodingKeys: String, CodingKey {
    case jws, type
    case moment = "verify_at"
    case audience = "aud"
  }

  /// The type of its event.
  public var testDescription: String { "\(type) for \(audience)" }

  /// All three of them.
  public static let notifications: [Authentic] = {
    do {
      return try JSONDecoder().decode([Authentic].self, from: Data(Repository.bytes(folder + "notifications.json")))
    } catch { fatalError("\(folder): \(error)") }
  }()

  /// Apple's keys endpoint as it answered then, with the keys that signed them and one more.
  public static func keys() throws -> [UInt8] { try Repository.bytes(folder + "jwks.json") }

  private static let folder = "Tests/TestSupport/Authentic/"
}
