import Foundation
import TestSupport

/// What breaks, in random order: the same for the same seed.
///
/// `FAULTS` in the environment names the only ones that come, by their cases: `FAULTS=brokerFrozen,diskFull`.
struct DisruptionSchedule {
  /// A disruption that lasts for a while, and maybe another one within that while.
  struct Episode {
    let disruption: Disruption
    /// The broker that it meets, or the first of those.
    let broker: Int
    /// How long it lasts.
    let duration: Duration
    let companion: Disruption?
    /// How long all goes well afterwards.
    let calm: Duration
  }

  private var random: SeededRandom
  private let seconds: ClosedRange<Double>
  private var kinds: [Disruption] = []

  private static let all = {
    let named = ProcessInfo.processInfo.environment["FAULTS"]?.split(separator: ",").map { String($0) } ?? []
    return Disruption.allCases.filter { named.isEmpty || named.contains("\($0)") }
  }()

  /// Disruptions that last for a time in `seconds`.
  init(_ random: SeededRandom, lasting seconds: ClosedRange<Double>) {
    (self.random, self.seconds) = (random, seconds)
  }

  /// The next one. Each kind comes once before any comes again.
  mutating func next() -> Episode {
    if kinds.isEmpty { kinds = Self.all.shuffled(using: &random) }
    let disruption = kinds.removeLast()
    let others = Self.all.filter { $0.place != disruption.place }
    let companion = others.randomElement(using: &random)
    return Episode(
      disruption: disruption, broker: Int.random(in: 0..<3, using: &random), duration: draw(),
      companion: Int.random(in: 0..<3, using: &random) == 0 ? companion : nil, calm: draw() / 4)
  }

  private mutating func draw() -> Duration { .seconds(Double.random(in: seconds, using: &random)) }
}
