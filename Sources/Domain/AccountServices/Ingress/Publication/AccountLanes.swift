import AccountEvents

/// What is under way of each account: one record at a time goes to the log, whatever else there is of it comes behind.
///
/// An account is known by a hash of its key, which is never written down. Two accounts with one hash wait for each other
/// now and then, and notice nothing.
struct AccountLanes {
  /// An account that something is under way of. A record without a key is an account of its own.
  typealias Name = Int

  private struct Lane {
    /// A publisher is between `enter` and `leave`.
    var isEntered = false
    /// A record that the spool holds too is on its way to the log.
    var isBusy = false
    /// How many records the spool holds, and those that it is being given.
    var held = 0
    /// Publishers that wait to enter, in their order.
    var waiting: [CheckedContinuation<Void, Never>] = []

    var isIdle: Bool { !isEntered && !isBusy && held == 0 }
  }

  private var lanes: [Name: Lane] = [:]

  /// How many accounts something is under way of.
  var count: Int { lanes.count }

  /// The lane of a record.
  static func name(of record: EventRecord) -> Name { name(of: record.key ?? record.value) }

  /// The lane of the records with this key, or of the one with this value and no key.
  static func name(of key: [UInt8]) -> Name { key.hashValue }

  /// Enters the lane, if nobody is in it.
  mutating func enter(_ name: Name) -> Bool {
    Self.enter(&lanes[name, default: Lane()])
  }

  private static func enter(_ lane: inout Lane) -> Bool {
    defer { lane.isEntered = true }
    return !lane.isEntered
  }

  /// Waits for those who are in the lane and before: `waiter` is resumed when it has entered.
  mutating func wait(for name: Name, _ waiter: CheckedContinuation<Void, Never>) {
    if enter(name) { return waiter.resume() }
    lanes[name, default: Lane()].waiting.append(waiter)
  }

  /// Leaves the lane to the next who waits.
  mutating func leave(_ name: Name) {
    guard let lane = lanes[name] else { return }
    if lane.waiting.isEmpty {
      change(name) { $0.isEntered = false }
    } else {
      lanes[name, default: Lane()].waiting.removeFirst().resume()
    }
  }

  /// Whether the spool holds anything of the account.
  func isHeld(_ name: Name) -> Bool { lanes[name].map { $0.held > 0 } ?? false }

  /// Counts records that the spool holds, or no longer holds.
  mutating func hold(_ count: Int, of name: Name) { change(name) { $0.held += count } }

  /// Takes the way to the log for a record that the spool holds. Nobody but the spool's drain asks for it, and the
  /// publisher whose record was on its way before the spool had it.
  mutating func begin(_ name: Name) -> Bool {
    if lanes[name, default: Lane()].isBusy { return false }
    lanes[name, default: Lane()].isBusy = true
    return true
  }

  /// Gives the way to the log back.
  mutating func end(_ name: Name) { change(name) { $0.isBusy = false } }

  private mutating func change(_ name: Name, _ body: (inout Lane) -> Void) {
    var lane = lanes[name, default: Lane()]
    body(&lane)
    lanes[name] = lane.isIdle ? nil : lane
  }
}
