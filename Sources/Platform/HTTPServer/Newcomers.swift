import EventLoop

/// The connections that are not proven, the one that has been here for longest first.
@Loop
struct Newcomers {
  private(set) var oldest: HTTPConnection?
  private var youngest: HTTPConnection?

  nonisolated init() {}

  mutating func append(_ connection: HTTPConnection, at now: MonotonicTime) {
    connection.newcomer = HTTPConnection.Newcomer(since: now, before: youngest)
    if let youngest { youngest.newcomer?.after = connection } else { oldest = connection }
    youngest = connection
  }

  /// Takes it out, if it is one of them.
  mutating func remove(_ connection: HTTPConnection) {
    guard let place = connection.newcomer else { return }
    if let before = place.before { before.newcomer?.after = place.after } else { oldest = place.after }
    if let after = place.after { after.newcomer?.before = place.before } else { youngest = place.before }
    connection.newcomer = nil
  }
}

extension HTTPConnection {
  /// A connection's place among the newcomers.
  struct Newcomer {
    let since: MonotonicTime
    var before: HTTPConnection?
    var after: HTTPConnection?
  }
}
