import Synchronization

/// How values are distributed, in buckets that are fixed from the start.
public final class Histogram: Sendable {
  /// From 10 µs to 10 s in steps of 1, 2.5 and 5: wide enough for a signature and for a broker in trouble.
  public static let secondsBuckets: [Double] = [
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1, 2.5, 5, 10,
  ]

  /// The upper bound of each bucket, ascending; what is larger than the last one falls into a bucket without bound.
  public let bounds: [Double]
  private let counts: [Counter]
  private let total = Atomic<UInt64>(0)

  init(bounds: [Double]) {
    precondition(!bounds.isEmpty && bounds.allSatisfy(\.isFinite), "a histogram needs finite bounds")
    precondition(zip(bounds, bounds.dropFirst()).allSatisfy(<), "a histogram's bounds ascend")
    self.bounds = bounds
    counts = (0...bounds.count).map { _ in Counter() }
  }

  /// Counts a value: two atomic additions, no lock, no allocation. What is no number is not counted: the sum would stay
  /// none for ever.
  public func observe(_ value: Double) {
    if value.isNaN { return }
    // Binary search for the first bound that is not below the value.
    var (low, high) = (0, bounds.count)
    while low < high {
      let middle = (low + high) / 2
      if bounds[middle] < value { low = middle + 1 } else { high = middle }
    }
    counts[low].increment()
    total.add(value)
  }

  /// Counts a duration, in seconds.
  public func observe(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    observe(Double(seconds) + Double(attoseconds) / 1e18)
  }

  /// How many values were counted.
  public var count: UInt64 { counts.reduce(0) { $0 &+ $1.value } }

  /// The sum of all values.
  public var sum: Double { Double(bitPattern: total.load(ordering: .relaxed)) }

  /// For each bucket, the last one included, how many values lie in it or below.
  var cumulativeCounts: [UInt64] {
    var running: UInt64 = 0
    return counts.map { count in
      running &+= count.value
      return running
    }
  }
}
