import Telemetry
import Testing

private enum Reason: String, CaseIterable {
  case size = "too-large"
  case signature = "bad-signature"
}

@Suite struct MetricsTests {
  private let registry = MetricsRegistry()
  private var text: String { String(decoding: registry.render(), as: UTF8.self) }

  @Test func rendersCountersAndGauges() {
    let accepted = registry.counter("siwa_accepted_total", "Notifications accepted.")
    let connections = registry.gauge("siwa_connections", "Open connections.")
    registry.gauge("siwa_keys_age_seconds", "Age of the keys.") { 12.5 }
    accepted.increment()
    accepted.increment(by: 2)
    connections.add(5)
    connections.add(-2)
    #expect(
      text == """
        # HELP siwa_accepted_total Notifications accepted.
        # TYPE siwa_accepted_total counter
        siwa_accepted_total 3
        # HELP siwa_connections Open connections.
        # TYPE siwa_connections gauge
        siwa_connections 3
        # HELP siwa_keys_age_seconds Age of the keys.
        # TYPE siwa_keys_age_seconds gauge
        siwa_keys_age_seconds 12.5

        """)
  }

  @Test func rendersOneFamilyForAllCasesOfAList() {
    let refused: CounterFamily<Reason> = registry.counters("siwa_refused_total", "Refused.", by: "reason")
    refused[.signature].increment()
    #expect(
      text == """
        # HELP siwa_refused_total Refused.
        # TYPE siwa_refused_total counter
        siwa_refused_total{reason="too-large"} 0
        siwa_refused_total{reason="bad-signature"} 1

        """)
  }

  @Test func rendersHistogramsCumulatively() {
    let histogram = registry.histogram(
      "siwa_publish_seconds", "Time to publish.", buckets: [0.001, 0.5, 1], labels: ["topic": "t"])
    for value in [0.001, 0.25, 0.5, 2] { histogram.observe(value) }
    histogram.observe(.milliseconds(250))
    #expect(
      text == """
        # HELP siwa_publish_seconds Time to publish.
        # TYPE siwa_publish_seconds histogram
        siwa_publish_seconds_bucket{topic="t",le="0.001"} 1
        siwa_publish_seconds_bucket{topic="t",le="0.5"} 4
        siwa_publish_seconds_bucket{topic="t",le="1"} 4
        siwa_publish_seconds_bucket{topic="t",le="+Inf"} 5
        siwa_publish_seconds_sum{topic="t"} 3.001
        siwa_publish_seconds_count{topic="t"} 5

        """)
    #expect(histogram.count == 5)
  }

  @Test func escapesHelpAndLabels() {
    registry.gauge("a", "one\ntwo \\", labels: ["l": "say \"hi\"\r\n\\"]) { .infinity }
    #expect(
      text
        == "# HELP a one\\ntwo \\\\\n# TYPE a gauge\na{l=\"say \\\"hi\\\"\r\\n\\\\\"} +Inf\n")
  }

  @Test func losesNoCountUnderConcurrency() async {
    let counter = registry.counter("c_total", "c")
    let gauge = registry.gauge("g", "g")
    let histogram = registry.histogram("h", "h", buckets: Histogram.secondsBuckets)
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<1000 {
            counter.increment()
            gauge.add(1)
            histogram.observe(0.5)
          }
        }
      }
    }
    #expect(counter.value == 8000)
    #expect(gauge.value == 8000)
    #expect(histogram.count == 8000)
    #expect(histogram.sum == 4000)
  }

  @Test func refusesWhatPrometheusWouldMisread() async {
    let unit = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = MetricsRegistry().counter("siwa_accepted", "No unit.")
    }
    #expect(words(of: unit).contains("siwa_accepted: a counter's name ends in _total"))
    let hyphen = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = MetricsRegistry().gauge("siwa-connections", "A hyphen.")
    }
    #expect(words(of: hyphen).contains("siwa-connections is no name of a metric"))
    let twice = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let registry = MetricsRegistry()
      _ = registry.gauge("a", "a", labels: ["x": "1"])
      _ = registry.gauge("a", "a", labels: ["x": "1"])
    }
    #expect(words(of: twice).contains("exists already"))
  }

  private func words(of result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }

  @Test func tellsWhatTheProcessUses() throws {
    registry.addProcess()
    func value(_ name: String) throws -> Double {
      let line = try #require(text.split { $0 == "\n" }.first { $0.hasPrefix("\(name) ") }, "\(text)")
      return try #require(Double(line.dropFirst(name.utf8.count + 1)))
    }
    #expect(text.contains("# TYPE process_cpu_seconds_total counter\n"))
    #expect(try value("process_cpu_seconds_total") > 0)
    #expect(try 1_000_000...1e12 ~= value("process_resident_memory_bytes"))
    let open = try value("process_open_fds")
    #expect(try open >= 3 && open <= value("process_max_fds"))
    // Since the machine's boot, and not in the future.
    let now = Double(Logger.systemTime()) / 1000
    #expect(try 1_600_000_000...now + 1 ~= value("process_start_time_seconds"))
  }

  @Test func countsNothingThatIsNoNumber() {
    let histogram = registry.histogram("h_seconds", "h", buckets: [1])
    histogram.observe(.nan)
    histogram.observe(2)
    #expect(histogram.count == 1 && histogram.sum == 2)
  }
}
