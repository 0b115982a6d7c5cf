/// Why the store cannot be opened, read or written.
package struct AccountStoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What happened, from a closed list: the label of a metric and the key of a log line.
  package enum Code: String, Sendable, CaseIterable {
    /// It cannot be reached or is locked at the moment.
    case unavailable
    /// The disk is full.
    case full
    /// Nobody knows whether the write has happened.
    case uncertain
    /// There is none, or an older one: `siwa store begin` or `siwa store migrate` is needed first.
    case notMigrated = "not-migrated"
    /// A later version of the programs has written it.
    case newerVersion = "newer-version"
    /// The master key is not the one that it was made with.
    case wrongMasterKey = "wrong-master-key"
    /// What is sealed does not open: it was changed, or moved from another row.
    case sealBroken = "seal-broken"
    /// The file or a row is damaged.
    case damaged
    /// It was closed.
    case closed
    /// The database failed in another way.
    case failed
  }

  /// What happened.
  package let code: Code
  /// More about it; no personal data.
  package let detail: String

  /// An error with the database's words.
  package init(_ code: Code, _ detail: String) { (self.code, self.detail) = (code, detail) }

  /// There is no store at that place.
  static func none(at place: String) -> AccountStoreError {
    AccountStoreError(
      .notMigrated,
      "there is none \(place): `siwa store begin` makes it, once; where there was one, its volume may not be mounted, or the "
        + "setting names another place")
  }

  /// A store of an older version cannot be brought forward yet.
  static func announcementsWait(_ count: Int) -> AccountStoreError {
    AccountStoreError(
      .failed,
      "it holds announcements that were not made yet (\(count)): let the programs of the version before make them, stop "
        + "those, and run `siwa store migrate` again")
  }

  /// Whether the same call can succeed later.
  package var isTransient: Bool { code == .unavailable || code == .full || code == .uncertain }

  /// Says what is wrong with the store.
  package var description: String { "the account store: \(detail)" }
}
