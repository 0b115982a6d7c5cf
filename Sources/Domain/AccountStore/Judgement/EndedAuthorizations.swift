import AccountEvents

/// What is over of an account's authorizations: tokens that were issued until then are dead, whenever they become known.
struct EndedAuthorizations {
  /// Stands in the database for every app, where one has its identifier.
  static let everyApp = ""

  /// Until when tokens were ended, by app.
  var endedAt: [String: Timestamp] = [:]

  /// The tokens of a sign-in at `time` that are over.
  func over(_ tokens: [NewToken], at time: Timestamp) -> [NewToken] {
    tokens.filter { isOver($0.client, at: time) }
  }

  /// Whether what was issued to an app at `time` is over.
  func isOver(_ client: ClientID, at time: Timestamp) -> Bool {
    [Self.everyApp, client.text].contains { app in endedAt[app].map { $0 >= time } ?? false }
  }
}
