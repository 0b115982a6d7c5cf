/// What is still to be said by a consumer of the events of a partition.
package struct WaitingAnnouncements: Sendable, Hashable {
  /// Those that can be read, oldest first.
  package private(set) var readable: [NumberedAnnouncements] = []
  /// The numbers of those between and before them that cannot: damaged, or moved from elsewhere. They stay in the store,
  /// where its verification names them, and hold up no others.
  package private(set) var unreadable: [Int64] = []
}

extension WaitingAnnouncements {
  /// Adds a row, which `open` opens.
  mutating func add(
    _ row: SealedAnnouncements, opening open: (SealedAnnouncements) throws(AccountStoreError) -> NumberedAnnouncements
  ) throws(AccountStoreError) {
    do throws(AccountStoreError) {
      readable.append(try open(row))
    } catch {
      guard [.sealBroken, .damaged].contains(error.code) else { throw error }
      unreadable.append(row.number)
    }
  }
}
