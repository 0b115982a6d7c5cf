/// A deletion that somebody asks for and Apple knows nothing of, with all that its code vouches for; or another event of our
/// own, which names its type itself.
///
/// Nobody has signed such an event, and whoever may write to its topic can write one. So whoever may ask has the key of the
/// account store, and says so with a code that is made with it.
package struct DeletionRequest: Sendable, Hashable {
  /// The event, as it stands in its record.
  package let event: [UInt8]
  /// Which operator asks; empty where the person has asked the app.
  package let person: [UInt8]
  /// Why; empty where nobody has said it.
  package let reason: [UInt8]

  /// A request from its parts.
  package init(_ event: [UInt8], by person: [UInt8], because reason: [UInt8]) {
    (self.event, self.person, self.reason) = (event, person, reason)
  }

  /// What the code is made of: each part after its length, so that no two requests have the same bytes. An account's name
  /// begins with ten capitals and digits, a token with a colon behind five letters: neither begins as this does.
  package var bytes: [UInt8] {
    var bytes = Array("deletion-request:".utf8)
    for part in [event, person, reason] {
      let count = UInt64(part.count)
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: count >> UInt64(shift)))
      }
      bytes.append(contentsOf: part)
    }
    return bytes
  }
}
