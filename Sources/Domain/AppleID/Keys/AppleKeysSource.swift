package import EventLoop

/// Where Apple's keys are fetched from.
@Loop
package protocol AppleKeysSource {
  /// Fetches the set once, as bytes that nobody has vouched for yet. Ends early when the task is cancelled.
  func fetch() async throws(AppleKeysFailure) -> [UInt8]
}
