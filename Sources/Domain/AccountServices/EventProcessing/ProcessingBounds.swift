/// How much a consumer does at once, and when it tries again.
package struct ProcessingBounds: Sendable, Equatable {
  /// How many records may be under way, those that wait for an earlier one of their account among them.
  package var inFlight: Int
  /// How many of them may belong to one partition.
  package var inFlightPerPartition: Int
  /// How many records more may wait for their next attempt, or behind one of their account that does.
  package var waiting: Int
  /// How many of them may belong to one partition.
  package var waitingPerPartition: Int
  /// How many events may be processed at once, where that waits for something outside.
  package var concurrency: Int
  /// When an event is tried again that failed.
  package var retries: RetryPace
  /// After how many attempts an event is an error in the log.
  package var alarmAfter: Int
  /// How old a record may be that is still tried again: less than its topic keeps it.
  package var giveUpAfter: Duration
  /// How far the time of an event of our own may be ahead of the broker's.
  package var clockTolerance: Duration
  /// How long the last things of a partition may take.
  package var handover = HandoverLimits()

  /// The limits of a hand-over, during which nothing is read of any partition.
  package struct HandoverLimits: Sendable, Equatable {
    /// For what is being worked on.
    package var work = Duration.seconds(2)
    /// For the last mark in the store; at the end of the process too.
    package var mark = Duration.seconds(1)
    /// For all of it, the commit among it.
    package var whole = Duration.seconds(5)

    /// What suits a group whose members come and go.
    package init() {}
  }

  /// Everything said, nothing assumed.
  package init(
    inFlight: Int, inFlightPerPartition: Int, waiting: Int, waitingPerPartition: Int, concurrency: Int,
    retries: RetryPace, alarmAfter: Int, giveUpAfter: Duration,
    clockTolerance: Duration
  ) {
    (self.inFlight, self.inFlightPerPartition, self.concurrency) = (inFlight, inFlightPerPartition, concurrency)
    (self.waiting, self.waitingPerPartition) = (waiting, waitingPerPartition)
    (self.retries, self.alarmAfter, self.giveUpAfter) = (retries, alarmAfter, giveUpAfter)
    self.clockTolerance = clockTolerance
  }
}
