import Cryptography
import EventLoop

/// Who may ask, and how often.
@Loop
final class Callers {
  private let callers: [AccountsSettings.Caller]
  /// Of each caller.
  private var limits: [RateLimit]

  /// These callers, each with so many requests a second.
  init(_ callers: [AccountsSettings.Caller], rate: Int) {
    self.callers = callers
    limits = Array(repeating: RateLimit(rate, at: Loop.now), count: callers.count)
  }

  /// Who shows the value of a field `Authorization`; nil for nobody.
  ///
  /// Compares the digests of all tokens: neither the time it takes nor a token's length says how much of a guess was right.
  func caller(showing authorization: String?) -> AccountsSettings.Caller? {
    guard let authorization else { return nil }
    let text = authorization.utf8.span
    guard 7...4096 ~= text.count, Self.isBearer(text) else { return nil }
    let shown = unsafe SHA256.digest(of: text.extracting(droppingFirst: 7).bytes)
    var found: AccountsSettings.Caller?
    for caller in callers {
      for token in caller.tokens where token.matches(shown) { found = caller }
    }
    return found
  }

  /// The name of the scheme, in any case of letters, and a blank.
  private static func isBearer(_ text: Span<UInt8>) -> Bool {
    let scheme = "bearer ".utf8.span
    for index in scheme.indices {
      let (byte, letter) = (text[index], scheme[index])
      guard byte == letter || 0x41...0x5a ~= byte && byte | 0x20 == letter else { return false }
    }
    return true
  }

  /// Counts a request; how long the caller has to wait first, or nil.
  func wait(of caller: AccountsSettings.Caller) -> Duration? {
    guard let place = callers.firstIndex(where: { $0.name == caller.name }) else { return nil }
    return limits[place].take(at: Loop.now)
  }
}

/// A bucket of requests: as many at once as in a second, and as many a second.
struct RateLimit: Sendable {
  private let rate: Double
  private var left: Double
  private var last: MonotonicTime

  /// A full one.
  init(_ rate: Int, at now: MonotonicTime) { (self.rate, left, last) = (Double(rate), Double(rate), now) }

  /// Takes a request out of it; how long until there is one, or nil.
  mutating func take(at now: MonotonicTime) -> Duration? {
    left = min(rate, left + Double((now - last).wholeNanoseconds) / 1e9 * rate)
    last = now
    guard left >= 1 else { return .seconds((1 - left) / rate) }
    left -= 1
    return nil
  }
}
