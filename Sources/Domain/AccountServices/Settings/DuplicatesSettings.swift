package import Configuration

/// How far back the ingress knows what it accepted: Apple repeats deliveries.
package struct DuplicatesSettings: Configurable, Equatable {
  /// How many events are remembered at most.
  package var number: Int
  /// How long an event is remembered.
  package var time: Duration

  /// Everything said, nothing assumed.
  package init(number: Int, time: Duration) { (self.number, self.time) = (number, time) }

  /// Reads `ingress.duplicates`.
  package init(reading settings: inout Settings) {
    number = settings.read(
      "ingress.duplicates.number", .integer(1000...10_000_000, unit: "events"), default: 100_000,
      "How many accepted events are remembered, so that what Apple repeats makes no second record; 26 bytes each."
    )
    time = settings.read(
      "ingress.duplicates.time", .duration(.seconds(1) ... .seconds(365 * 86_400)), default: .seconds(90_000),
      "How long an accepted event is remembered; Apple's signature of it holds for a day.")
  }
}
