import AccountEvents

/// What is over of an account's authorizations: tokens that were issued until then are dead, whenever they become known.
struct EndedAuthorizations {
  /// Stands in the database for every app, where one has its identifier.
  static let everyApp = ""

  /// Until when the account is erased; nil where it never was.
  var erasedAt: Timestamp?
  /// Until when tokens were ended, by app.
  var endedAt: [String: Timestamp] = [:]

  /// The tokens of a sign-in at `time` that are over.
  func over(_ tokens: [NewToken], at time: Timestamp) -> [NewToken] {
    if isErased(at: time) { return tokens }
    return tokens.filter { token in
      [Self.everyApp, token.client.text].contains { app in endedAt[app].map { $0 >= time } ?? false }
    }
  }

  /// Whether a sign-in at `time` is of the account as it was before its erasure.
  func isErased(at time: Timestamp) -> Bool { erasedAt.map { $0 >= time } ?? false }
}
