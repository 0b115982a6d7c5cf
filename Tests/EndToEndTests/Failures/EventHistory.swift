/// What of a trial's events stands on the topics, and what is wrong with it: missing, twice, out of order.
///
/// A user's events must stand in the order in which they were sent: e1 e2 e3. The same event directly after itself is
/// there twice, which may happen (e1 e1 e2); after a later one it is out of order (e1 e2 e1). What went into quarantine
/// is kept, and has no order.
struct EventHistory {
  private let events: Int
  /// How often each event is on a topic.
  private var counts: [UInt8]
  private var quarantined: [Bool]
  /// Which events stand on the events' topic, user after user.
  private(set) var isOnTopic: [Bool]
  /// How many these are.
  var eventsOnTopic: Int { isOnTopic.count { $0 } }
  /// How many events there can be.
  var size: Int { counts.count }
  /// Each user's latest event on the topic so far, and the partition it is in.
  private var latest: [(number: Int, partition: Int32)]
  private var outOfOrder = 0
  private var unknown = 0

  /// A history of `users` with `events` each, of which none has been seen.
  init(users: Int, events: Int) {
    self.events = events
    counts = Array(repeating: 0, count: users * events)
    quarantined = Array(repeating: false, count: users * events)
    isOnTopic = quarantined
    latest = Array(repeating: (-1, -1), count: users)
  }

  /// Notes the next record of a partition of the events' topic.
  mutating func onTopic(user: Int, number: Int, partition: Int32) {
    guard let place = known(user, number) else { return }
    counts[place] = min(counts[place], 254) + 1
    isOnTopic[place] = true
    let (last, home) = latest[user]
    // One user's events are in one partition: there is no order between two.
    if number < last || home != -1 && home != partition { outOfOrder += 1 }
    latest[user] = (max(number, last), partition)
  }

  /// Notes a record in quarantine.
  mutating func inQuarantine(user: Int, number: Int) {
    guard let place = known(user, number) else { return }
    counts[place] = min(counts[place], 254) + 1
    quarantined[place] = true
  }

  /// What there is to say, when each user was told 200 for as many of their first events.
  func verdict(acknowledged: [Int]) -> Verdict {
    var verdict = Verdict(outOfOrder: outOfOrder, unknown: unknown)
    for (user, count) in acknowledged.enumerated() {
      verdict.acknowledged += count
      for number in 0..<count where counts[user * events + number] == 0 {
        verdict.missing += 1
        if verdict.examples.count < 5 { verdict.examples.append("event \(number) of user \(user) is missing") }
      }
    }
    verdict.quarantined = quarantined.count { $0 }
    verdict.twice = counts.reduce(0) { $0 + max(Int($1) - 1, 0) }
    return verdict
  }

  /// Where an event stands in `isOnTopic`; nil for what is none of the trial's.
  func place(user: Int, number: Int) -> Int? {
    latest.indices.contains(user) && 0..<events ~= number ? user * events + number : nil
  }

  private mutating func known(_ user: Int, _ number: Int) -> Int? {
    let place = place(user: user, number: number)
    if place == nil { unknown += 1 }
    return place
  }

  /// The figures.
  struct Verdict: Equatable {
    /// How many events were answered 200.
    var acknowledged = 0
    /// How many of them are nowhere.
    var missing = 0
    /// How many records there are more than events.
    var twice = 0
    /// How many records stand behind a later event of the same user.
    var outOfOrder = 0
    /// How many records are of the trial, but of nobody in it.
    var unknown = 0
    /// How many events are in quarantine.
    var quarantined = 0
    /// Some of what is missing.
    var examples: [String] = []
  }
}
