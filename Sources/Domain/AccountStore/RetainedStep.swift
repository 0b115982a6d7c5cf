package import AccountEvents

/// A step of an erasure whose data was kept under a legal ground, until a day.
package struct RetainedStep: Sendable, Hashable {
  /// The event and the target.
  package let place: OpenErasure.Place
  /// The account that the event happened to.
  package let account: AccountHash
  /// The ground and the day, as the target recorded them. The day is the last ten characters, in ISO 8601's form.
  package let detail: String
  /// The time of the record.
  package let time: Timestamp

  /// A step from its parts.
  package init(_ place: OpenErasure.Place, account: AccountHash, detail: String, time: Timestamp) {
    (self.place, self.account, self.detail, self.time) = (place, account, detail, time)
  }

  /// The same of the account under another hash.
  func about(_ account: AccountHash) -> RetainedStep {
    RetainedStep(place, account: account, detail: detail, time: time)
  }
}

extension Timestamp {
  /// The day in UTC in ISO 8601's form: `2036-12-31`.
  var day: String { String(description.prefix(10)) }
}
