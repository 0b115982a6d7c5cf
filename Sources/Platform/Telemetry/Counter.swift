import Synchronization

/// A number that only grows: events since the start.
public final class Counter: Sendable {
  private let count = Atomic<UInt64>(0)

  init() {}

  /// Counts `amount` more: one atomic addition, no lock, no allocation.
  public func increment(by amount: UInt64 = 1) { count.wrappingAdd(amount, ordering: .relaxed) }

  /// The number so far.
  public var value: UInt64 { count.load(ordering: .relaxed) }
}
