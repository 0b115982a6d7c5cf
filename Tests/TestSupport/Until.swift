import EventLoop
public import Testing

/// Waits for what nobody announces: a metric that counts up, a page that says another thing. Asks again and again, and
/// fails the test where it takes longer than anything should.
@Loop
public func until(
  within limit: Duration = .seconds(300), every pause: Duration = .milliseconds(10),
  _ condition: @Loop () async throws -> Bool,
  sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  let end = MonotonicTime.now + limit
  while try await !condition() {
    guard .now < end else {
      Issue.record("waited \(limit) in vain", sourceLocation: sourceLocation)
      throw CancellationError()
    }
    try await Loop.sleep(for: pause)
  }
}
