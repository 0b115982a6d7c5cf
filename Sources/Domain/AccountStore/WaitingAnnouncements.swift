/// Announcements of a consumer and partition that are still to be said.
package struct WaitingAnnouncements: Sendable, Hashable {
  /// Those that can be read, oldest first.
  package private(set) var readable: [NumberedAnnouncement] = []
  /// The numbers of those between and before them that cannot: damaged, or moved from elsewhere. They stay in the store,
  /// where its verification names them, and hold up no others.
  package private(set) var unreadable: [Int64] = []
}

extension WaitingAnnouncements {
  /// Adds a row, which `open` opens.
  mutating func add(
    _ row: SealedAnnouncement, opening open: (SealedAnnouncement) throws(AccountStoreError) -> Announcement
  ) throws(AccountStoreError) {
    do throws(AccountStoreError) {
      readable.append(NumberedAnnouncement(number: row.number, announcement: try open(row)))
    } catch {
      guard [.sealBroken, .damaged].contains(error.code) else { throw error }
      unreadable.append(row.number)
    }
  }
}
