import AccountEvents

/// The last identifiers that Apple gave, and for whom: that it gives everybody the same one is seen at once, and without
/// asking the store.
struct RecentIdentifiers {
  private var owners: [TransferSubject: Int64] = [:]
  private var order = FIFO<TransferSubject>()
  private let most: Int

  /// Remembers so many.
  init(_ most: Int) { self.most = most }

  /// Notes the identifier of a user. False where it is somebody else's.
  mutating func note(_ identifier: TransferSubject, of user: Int64) -> Bool {
    if let owner = owners[identifier] { return owner == user }
    owners[identifier] = user
    order.append(identifier)
    if order.count > most, let oldest = order.popFirst() { owners[oldest] = nil }
    return true
  }
}
