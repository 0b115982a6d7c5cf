/// One metric with its labels set.
enum Metric: Sendable {
  case counter(@Sendable () -> UInt64)
  /// A counter of something that is divided finer: seconds.
  case amount(@Sendable () -> Double)
  case gauge(@Sendable () -> Double)
  case histogram(Histogram)

  var type: String {
    switch self {
    case .counter, .amount: "counter"
    case .gauge: "gauge"
    case .histogram: "histogram"
    }
  }
}

/// All metrics of one name.
struct MetricFamily: Sendable {
  let name: String
  let help: String
  var members: [(labels: MetricLabels, metric: Metric)]

  mutating func add(_ labels: MetricLabels, _ metric: Metric, help: String) {
    for member in members {
      precondition(member.metric.type == metric.type && self.help == help, "\(name) means two things")
      precondition(member.labels.names == labels.names, "\(name) has two sets of labels")
      precondition(member.labels != labels, "\(name)\(labels.text()) exists already")
    }
    members.append((labels, metric))
  }

  func render(into text: inout String) {
    let help = help.escaped(["\\": "\\\\", "\n": "\\n"])
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(members[0].metric.type)\n"
    for (labels, metric) in members {
      switch metric {
      case .counter(let value): text += "\(name)\(labels.text()) \(value())\n"
      case .gauge(let value), .amount(let value): text += "\(name)\(labels.text()) \(value().prometheus)\n"
      case .histogram(let histogram):
        let counts = histogram.cumulativeCounts
        for (bound, count) in zip(histogram.bounds + [.infinity], counts) {
          text += "\(name)_bucket\(labels.text(adding: ("le", bound.prometheus))) \(count)\n"
        }
        text += "\(name)_sum\(labels.text()) \(histogram.sum.prometheus)\n"
        // What the buckets say, not a second reading: the two must agree.
        text += "\(name)_count\(labels.text()) \(counts[counts.count - 1])\n"
      }
    }
  }
}

extension Double {
  /// A number as Prometheus reads it: `0.5`, `3`, `1e-05`, `+Inf`.
  fileprivate var prometheus: String {
    if isNaN { return "NaN" }
    if isInfinite { return self < 0 ? "-Inf" : "+Inf" }
    let text = description
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
