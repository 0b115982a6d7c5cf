package import AccountEvents
package import EventLoop

/// What a source of keys answered: bytes that nobody has vouched for yet.
package struct AppleKeysAnswer: Sendable {
  /// The text of the set.
  package let body: [UInt8]
  /// What the source's clock said (`Date`, to the second); nil where it did not say.
  package let date: Timestamp?

  /// An answer as it came.
  package init(_ body: [UInt8], date: Timestamp? = nil) { (self.body, self.date) = (body, date) }
}

/// Where Apple's keys are fetched from.
@Loop
package protocol AppleKeysSource {
  /// Fetches the set once. Ends early when the task is cancelled.
  func fetch() async throws(AppleKeysFailure) -> AppleKeysAnswer
}
