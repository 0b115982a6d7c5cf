import EventLoop

/// Asks, and asks again after a short pause where the answer may be another later. Throws the last answer when `limit`
/// is over or the task is cancelled.
@Loop
func repeatedly<Value>(
  within limit: Duration, _ ask: (Duration) async throws(KafkaError) -> Value
) async throws(KafkaError) -> Value {
  let end = MonotonicTime.now + limit
  while true {
    let failure: KafkaError
    do throws(KafkaError) {
      return try await ask(max(end - .now, .milliseconds(1)))
    } catch {
      guard error.isRetriable else { throw error }
      failure = error
    }
    let next = MonotonicTime.now + .milliseconds(50)
    guard next < end else { throw failure }
    do { try await Loop.sleep(until: next) } catch { throw failure }
  }
}
