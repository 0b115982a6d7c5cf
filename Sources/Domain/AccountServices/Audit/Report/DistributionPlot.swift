import Glibc

/// A drawing (SVG) of how long something took: lengths from left to right, each decade as wide as the next, and how often
/// each came; with the median and two further quantiles, and the deadline where it is in sight.
struct DistributionPlot {
  private static let (width, height) = (760.0, 270.0)
  private static let frame = (left: 56.0, right: 16.0, top: 44.0, bottom: 36.0)
  /// Bars of a decade.
  private static let fineness = 8.0
  /// What is written below the axis, in milliseconds.
  private static let ticks: [(Int64, String)] = [
    (1, "1 ms"), (10, "10 ms"), (100, "100 ms"), (1000, "1 s"), (10_000, "10 s"), (60_000, "1 min"),
    (600_000, "10 min"), (3_600_000, "1 h"), (21_600_000, "6 h"), (86_400_000, "1 d"), (604_800_000, "7 d"),
    (2_592_000_000, "30 d"), (31_536_000_000, "1 y"), (1 << 40, "34 y"),
  ]

  private let times: TimeDistribution
  private let deadline: Int64
  private let bars: [(bin: Int, count: UInt64)]
  private let (first, last): (Int64, Int64)

  /// A drawing of lengths, of which there is at least one.
  init(_ times: TimeDistribution, deadline: Int64) {
    (self.times, self.deadline) = (times, deadline)
    let lengths = times.lengths
    var counts: [Int: UInt64] = [:]
    for (milliseconds, count) in lengths { counts[Self.bin(of: milliseconds.lowerBound), default: 0] += count }
    bars = counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    let shortest = max(1, lengths.first?.milliseconds.lowerBound ?? 1)
    let first = Self.ticks.last { $0.0 <= shortest }?.0 ?? 1
    self.first = first
    // One tick more than needed, so that the longest does not stand at the edge.
    last = Self.ticks.first { $0.0 > max(times.maximum, first) }?.0 ?? 1 << 41
  }

  private static func bin(of milliseconds: Int64) -> Int {
    Int((log10(Double(max(1, milliseconds))) * fineness).rounded(.down))
  }

  private func x(_ milliseconds: Double) -> Double {
    let share = (log10(max(1, milliseconds)) - log10(Double(first))) / (log10(Double(last)) - log10(Double(first)))
    return Self.frame.left + share * (Self.width - Self.frame.left - Self.frame.right)
  }

  /// The drawing. Its colours are those of the page that it stands in.
  var svg: String {
    let most = bars.map(\.count).max() ?? 1
    let scale = Self.scale(for: most)
    let (bottom, room) = (Self.height - Self.frame.bottom, Self.height - Self.frame.bottom - Self.frame.top)
    func y(_ count: UInt64) -> Double { bottom - room * Double(count) / Double(scale.last ?? most) }

    var svg = """
      <svg class="plot" viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" role="img" aria-labelledby="plot-title">
      <title id="plot-title">Time to completion of \(times.count) obligations, on a logarithmic axis</title>

      """
    for count in scale {
      svg += line("grid", Self.frame.left, y(count), Self.width - Self.frame.right, y(count))
      svg += text("axis end", Self.frame.left - 8, y(count) + 4, Self.short(count))
    }
    for (milliseconds, name) in Self.ticks where first...last ~= milliseconds {
      let place = x(Double(milliseconds))
      svg += line("grid", place, bottom, place, bottom + 5)
      svg += text(milliseconds == last ? "axis end" : "axis mid", place, bottom + 20, name)
    }
    for (bin, count) in bars {
      let left = max(x(pow(10, Double(bin) / Self.fineness)), Self.frame.left)
      let right = x(pow(10, Double(bin + 1) / Self.fineness))
      // One among a million must be seen, too.
      let height = max(bottom - y(count), 2)
      svg += """
        <rect class="bar" x="\(Self.tenths(left + 0.5))" y="\(Self.tenths(bottom - height))" \
        width="\(Self.tenths(max(right - left - 1, 1)))" height="\(Self.tenths(height))" rx="1.5"/>

        """
    }
    for (row, (share, name)) in [(500, "half"), (900, "90%"), (990, "99%")].enumerated() {
      guard let length = times.quantile(perMille: share) else { continue }
      svg += marker("quantile", Double(length), row, "\(name) within \(TimeSpan.words(length))", to: bottom)
    }
    if first...last ~= deadline { svg += marker("deadline", Double(deadline), 0, "deadline", to: bottom) }
    return svg + "</svg>\n"
  }

  /// A line at a length, whose name stands above, or beside it where there is no room to the right.
  private func marker(_ kind: String, _ milliseconds: Double, _ row: Int, _ name: String, to bottom: Double) -> String {
    let (place, height) = (x(milliseconds), 12 + 14 * Double(row))
    let isAtEnd = place > Self.width - 170
    return line(kind, place, height - 9, place, bottom)
      + text("\(kind) \(isAtEnd ? "end" : "start")", place + (isAtEnd ? -5 : 5), height, name)
  }

  private func line(_ kind: String, _ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double) -> String {
    let (from, to) = ((Self.tenths(x1), Self.tenths(y1)), (Self.tenths(x2), Self.tenths(y2)))
    return #"<line class="\#(kind)" x1="\#(from.0)" y1="\#(from.1)" x2="\#(to.0)" y2="\#(to.1)"/>"# + "\n"
  }

  private func text(_ kind: String, _ x: Double, _ y: Double, _ words: String) -> String {
    #"<text class="\#(kind)" x="\#(Self.tenths(x))" y="\#(Self.tenths(y))">\#(words)</text>"# + "\n"
  }

  /// Up to five round numbers from nothing to the most or just above it.
  private static func scale(for most: UInt64) -> [UInt64] {
    var decade: UInt64 = 1
    while true {
      for factor: UInt64 in [1, 2, 5] where decade * factor * 4 >= most {
        let step = decade * factor
        return (0...(most + step - 1) / step).map { $0 * step }
      }
      decade *= 10
    }
  }

  /// `1200000` as `1.2M`.
  private static func short(_ count: UInt64) -> String {
    for (size, letter) in [(1_000_000, "M"), (1000, "k")] as [(UInt64, String)] where count >= size {
      let tenths = count * 10 / size
      return tenths % 10 == 0 ? "\(tenths / 10)\(letter)" : "\(tenths / 10).\(tenths % 10)\(letter)"
    }
    return "\(count)"
  }

  private static func tenths(_ number: Double) -> String {
    let tenths = Int((number * 10).rounded())
    return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10)\(tenths % 10 == 0 ? "" : ".\(abs(tenths) % 10)")"
  }
}
