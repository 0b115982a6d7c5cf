import Cryptography
import EventLoop

/// What the shop remembers of browsers, each under a secret that the browser's cookie has. No more than so many, and none for
/// longer than its time: the oldest go first.
struct BrowserMemory<Value> {
  private var values: [String: (value: Value, since: MonotonicTime)] = [:]
  private let most: Int
  /// How long a cookie is good for.
  let lifetime: Duration

  /// An empty memory.
  init(most: Int, lifetime: Duration) { (self.most, self.lifetime) = (most, lifetime) }

  /// Remembers something. Returns the secret for the cookie.
  mutating func add(_ value: Value, at now: MonotonicTime) throws(CryptographyError) -> String {
    let secret = try String.secret()
    values = values.filter { now - $0.value.since < lifetime }
    if values.count >= most, let oldest = values.min(by: { $0.value.since < $1.value.since }) {
      values[oldest.key] = nil
    }
    values[secret] = (value, now)
    return secret
  }

  /// What is remembered under the secret of a cookie; nil where there is nothing, or its time is over.
  func value(of secret: String?, at now: MonotonicTime) -> Value? {
    guard let secret, let found = values[secret], now - found.since < lifetime else { return nil }
    return found.value
  }

  /// Changes what is remembered, where it still is.
  mutating func update(_ secret: String, _ change: (inout Value) -> Void) {
    guard var found = values[secret] else { return }
    change(&found.value)
    values[secret] = found
  }

  /// Changes all that is remembered.
  mutating func updateAll(_ change: (inout Value) -> Void) {
    for secret in values.keys { update(secret, change) }
  }

  /// Forgets it.
  mutating func forget(_ secret: String) { values[secret] = nil }
}
