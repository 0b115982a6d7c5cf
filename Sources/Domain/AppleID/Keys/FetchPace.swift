/// How often Apple is asked for its keys.
package struct FetchPace: Sendable {
  /// The longest time between two fetches while all goes well; each comes up to a tenth earlier, so that many
  /// processes do not ask at once.
  package var refresh: Duration
  /// The shortest time between a fetch and the next one, where only an unknown key asks for it.
  package var pause: Duration
  /// The time after the first fetch that failed; it doubles with each further one, and up to half of it is left off.
  package var firstRetry: Duration
  /// Where that doubling ends.
  package var longestRetry: Duration

  /// A pace; every time is positive.
  package init(refresh: Duration, pause: Duration, firstRetry: Duration, longestRetry: Duration) {
    precondition(min(refresh, pause, firstRetry, longestRetry) > .zero, "fetches without a pause")
    self.refresh = refresh
    self.pause = pause
    self.firstRetry = firstRetry
    self.longestRetry = longestRetry
  }
}
