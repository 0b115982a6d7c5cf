import Synchronization

/// All metrics of a process, and their text form for Prometheus.
///
/// Metrics are made at start, each with its labels: so their number is known, and whatever comes from outside can never
/// make a new one. Counting touches the metric alone, never the registry.
public final class MetricsRegistry: Sendable {
  private let families = Mutex<[MetricFamily]>([])

  /// A registry without metrics.
  public init() {}

  /// Makes a counter; its name ends in `_total`. Several with one name differ in their labels' values.
  public func counter(_ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:]) -> Counter {
    let counter = Counter()
    self.counter(name, help, labels: labels) { counter.value }
    return counter
  }

  /// Adds a counter that somebody else keeps; it is asked for whenever the metrics are rendered, by who renders.
  public func counter(
    _ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:],
    reading value: @escaping @Sendable () -> UInt64
  ) {
    precondition(name.hasSuffix("_total"), "\(name): a counter's name ends in _total")
    add(.counter(value), name, help, labels)
  }

  /// Adds a counter of an amount, such as seconds, that somebody else keeps.
  public func counter(
    _ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:],
    readingAmount value: @escaping @Sendable () -> Double
  ) {
    precondition(name.hasSuffix("_total"), "\(name): a counter's name ends in _total")
    add(.amount(value), name, help, labels)
  }

  /// Makes a counter for each case of `Key`, with the case's raw value as the value of `label`.
  public func counters<Key>(_ name: String, _ help: String, by label: String) -> CounterFamily<Key> {
    CounterFamily { key in counter(name, help, labels: [label: key.rawValue]) }
  }

  /// Makes a gauge, which is 0 until it is set.
  public func gauge(_ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:]) -> Gauge {
    let gauge = Gauge()
    add(.gauge { gauge.value }, name, help, labels)
    return gauge
  }

  /// Adds a gauge whose value is asked for whenever the metrics are rendered, on the thread that renders.
  public func gauge(
    _ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:],
    reading value: @escaping @Sendable () -> Double
  ) {
    add(.gauge(value), name, help, labels)
  }

  /// Makes a histogram with the given upper bounds; its name ends in its unit (`_seconds`, `_bytes`).
  public func histogram(
    _ name: String, _ help: String, buckets: [Double], labels: KeyValuePairs<String, String> = [:]
  ) -> Histogram {
    let histogram = Histogram(bounds: buckets)
    add(.histogram(histogram), name, help, labels)
    return histogram
  }

  /// The metrics in Prometheus' text form, version 0.0.4: what `GET /metrics` answers, as `contentType`.
  public func render() -> [UInt8] {
    let families = families.withLock { $0 }
    var text = ""
    for family in families { family.render(into: &text) }
    return Array(text.utf8)
  }

  /// The Content-Type of what `render` returns.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  private func add(_ metric: Metric, _ name: String, _ help: String, _ labels: KeyValuePairs<String, String>) {
    let labels = MetricLabels(labels)
    precondition(MetricLabels.isName(name, colons: true), "\(name) is no name of a metric")
    if case .histogram = metric { precondition(!labels.names.contains("le"), "le is the histogram's own label") }
    families.withLock { families in
      guard let index = families.firstIndex(where: { $0.name == name }) else {
        return families.append(MetricFamily(name: name, help: help, members: [(labels, metric)]))
      }
      families[index].add(labels, metric, help: help)
    }
  }
}
