/// What reads bytes that come from outside, and what it promises whatever they are.
///
/// Each check is a whole test of one input: `make fuzz` looks for inputs that break a promise or trap, and `make test`
/// checks all those of `Corpus/`.
enum Subject: String, CaseIterable, Sendable {
  /// The messages on a connection: heads, bodies, chunks.
  case http
  /// What a load balancer says at the beginning of a connection.
  case proxy
  /// JSON as such.
  case json
  /// The body of a POST, up to the signature.
  case notification
  /// The header and the claims of a notification whose signature holds: a line, and what follows it.
  case claims
  /// Apple's key set.
  case keys
  /// What Apple's token endpoint answers.
  case tokens
  /// What Apple's migration endpoint answers.
  case migration
  /// The values of records on our topics, the headers of those in the spool, and dead letters.
  case records
  /// What mailers ask, and what services answer that are told to erase.
  case requests
  /// What applications ask of siwa-accounts, and lines of an import.
  case accounts
  /// What is sent to siwa-accounts, and what it answers.
  case endpoint
  /// What a team that hands its users over says of the files, and the lines of these.
  case transfers
  /// The configuration file.
  case settings
  /// What a transparency log consists of: notes, keys, checkpoints, proofs, bundles, a witness's requests and answers.
  case transparency

  /// Throws where a promise does not hold for these bytes.
  func check(_ bytes: [UInt8]) throws {
    switch self {
    case .http: try Self.checkHTTP(bytes)
    case .proxy: try Self.checkProxy(bytes)
    case .json: try Self.checkJSON(bytes)
    case .notification: try Self.checkNotification(bytes)
    case .claims: try Self.checkClaims(bytes)
    case .keys: try Self.checkKeys(bytes)
    case .tokens: try Self.checkTokens(bytes)
    case .migration: try Self.checkMigration(bytes)
    case .records: try Self.checkRecords(bytes)
    case .requests: try Self.checkRequests(bytes)
    case .accounts: try Self.checkAccounts(bytes)
    case .endpoint: try Self.checkEndpoint(bytes)
    case .transfers: try Self.checkTransfers(bytes)
    case .settings: try Self.checkSettings(bytes)
    case .transparency: try Self.checkTransparency(bytes)
    }
  }
}

/// A promise that does not hold.
struct BrokenPromise: Error, CustomStringConvertible {
  let description: String
}

/// Throws unless it holds. The sentence says what was promised.
func promise(_ sentence: String, _ holds: Bool) throws(BrokenPromise) {
  if !holds { throw BrokenPromise(description: sentence) }
}
