import AppleSimulator

/// Where the consumers find Apple, and as whom they ask: a simulated one, in this process or in one of its own.
struct AppleSide: Sendable {
  /// The team whose apps people sign in to, and its app.
  static let (team, app) = ("A1B2C3D4E5", "com.example.app")

  /// `https://127.0.0.1:port`.
  let origin: String
  /// The certificate that it shows, and its key.
  let certificate, privateKey: String
  /// The team's key.
  let key: DeveloperKey
}
