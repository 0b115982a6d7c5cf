import Synchronization

/// A number that goes up and down: open connections, the size of a queue.
public final class Gauge: Sendable {
  private let bits = Atomic<UInt64>(0)

  init() {}

  /// Replaces the value.
  public func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

  /// Adds to the value; a negative amount takes away.
  public func add(_ amount: Double) { bits.add(amount) }

  /// The value now.
  public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

extension Atomic where Value == UInt64 {
  /// Adds to a `Double` that is kept as its bits.
  borrowing func add(_ amount: Double) {
    var old = load(ordering: .relaxed)
    while true {
      let new = (Double(bitPattern: old) + amount).bitPattern
      let (exchanged, original) = weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
      if exchanged { return }
      old = original
    }
  }
}
