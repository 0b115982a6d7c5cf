import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

/// A member that does not know yet that it has lost a partition may have something to say in its producer, which reaches
/// the log behind what the next member has said since. Nobody can take it back; so what is true now is said after it.
extension EventProcessor {
  /// These were said, or may have been, when another member had said them already, and newer ones perhaps.
  func restate(_ announcements: [Announcement]) {
    guard consumer.restate != nil else { return }
    for announcement in announcements { restatings.add(announcement) }
  }

  /// Says what is true now of each key, until the store, asked afterwards, knows of nothing newer.
  func sayWhatIsTrue(_ batch: [Announcement]) async {
    guard let restate = consumer.restate else { return }
    var seen: Set<[UInt8]> = []
    for announcement in batch where seen.insert(Array(announcement.topic.name.utf8) + announcement.key).inserted {
      var said: Announcement?
      while true {
        let truth = await persistently { () throws(AccountStoreError) in try await restate(announcement) }
        guard let truth = truth ?? nil, truth != said, await isSaid(truth) else { break }
        said = truth
        metrics.countRestated()
      }
    }
    wake()
  }

  /// Puts an announcement onto the log, however often it takes; false where nothing is done any more.
  private func isSaid(_ announcement: Announcement) async -> Bool {
    var failures = 0
    pausing += 1
    defer { pausing -= 1 }
    while !isOver {
      let result = await withCheckedContinuation { waiting in
        log.append(KafkaRecord(announcement)) { waiting.resume(returning: $0) }
      }
      if case .success = result { return true }
      failures += 1
      await agenda.wait(Self.logPace.pause(after: failures, random: 0.5 + random() / 2))
    }
    return false
  }
}
