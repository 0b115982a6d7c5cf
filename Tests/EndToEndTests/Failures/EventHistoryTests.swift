import Cryptography
import Testing

/// The checker can fail: histories by hand, each with what is wrong in it.
@Suite struct EventHistoryTests {
  /// Two users with four events each; `numbers` are user 0's events as they stand on the topic.
  private func verdict(
    _ numbers: [Int], quarantined: [Int] = [], acknowledged: Int = 4, partitions: [Int32] = []
  ) -> EventHistory.Verdict {
    var history = EventHistory(users: 2, events: 4)
    for (place, number) in numbers.enumerated() {
      history.onTopic(user: 0, number: number, partition: partitions.isEmpty ? 7 : partitions[place])
      if place < 4 { history.onTopic(user: 1, number: place, partition: 3) }
    }
    for number in quarantined { history.inQuarantine(user: 0, number: number) }
    return history.verdict(acknowledged: [acknowledged, 0])
  }

  @Test func allInTheirOrderIsRight() {
    #expect(verdict([0, 1, 2, 3]) == EventHistory.Verdict(acknowledged: 4))
  }

  @Test func whatWasNotAcknowledgedMayBeMissing() {
    #expect(verdict([0, 1], acknowledged: 2) == EventHistory.Verdict(acknowledged: 2))
    #expect(verdict([0, 1, 2], acknowledged: 2) == EventHistory.Verdict(acknowledged: 2))
  }

  @Test(arguments: [([1, 2, 3], 0), ([0, 1, 3], 2), ([0, 1, 2], 3)])
  func anAcknowledgedEventThatIsNowhereIsMissing(numbers: [Int], missing: Int) {
    let verdict = verdict(numbers)
    #expect(verdict.missing == 1 && verdict.outOfOrder == 0 && verdict.twice == 0)
    #expect(verdict.examples == ["event \(missing) of user 0 is missing"])
  }

  @Test func anEventDirectlyBehindItselfIsTwice() {
    #expect(verdict([0, 1, 1, 2, 3, 3, 3]) == EventHistory.Verdict(acknowledged: 4, twice: 3))
  }

  @Test(arguments: [
    ([0, 1, 0, 2, 3], 1, 1), ([0, 2, 1, 3], 1, 0), ([3, 2, 1, 0], 3, 0), ([0, 1, 2, 3, 0, 1], 2, 2),
  ])
  func anEventBehindALaterOneIsOutOfOrder(numbers: [Int], outOfOrder: Int, twice: Int) {
    #expect(verdict(numbers) == EventHistory.Verdict(acknowledged: 4, twice: twice, outOfOrder: outOfOrder))
  }

  @Test func oneUserInTwoPartitionsHasNoOrder() {
    #expect(verdict([0, 1, 2, 3], partitions: [7, 7, 8, 8]).outOfOrder == 1)
  }

  @Test func quarantineKeepsAnEventAndHasNoOrder() {
    #expect(verdict([0, 2, 3], quarantined: [1]) == EventHistory.Verdict(acknowledged: 4, quarantined: 1))
    #expect(verdict([0, 1, 2, 3], quarantined: [1]) == EventHistory.Verdict(acknowledged: 4, twice: 1, quarantined: 1))
  }

  @Test func whatIsOnTheTopicAloneIsToBeInTheLog() {
    var history = EventHistory(users: 2, events: 2)
    history.onTopic(user: 1, number: 0, partition: 0)
    history.inQuarantine(user: 0, number: 1)
    #expect(history.isOnTopic == [false, false, true, false] && history.eventsOnTopic == 1)
    #expect(history.place(user: 1, number: 0) == 2 && history.place(user: 2, number: 0) == nil)
  }

  @Test func recordsOfNobodyAreTold() {
    var history = EventHistory(users: 1, events: 1)
    history.onTopic(user: 1, number: 0, partition: 0)
    history.onTopic(user: 0, number: 1, partition: 0)
    #expect(history.verdict(acknowledged: [0]) == EventHistory.Verdict(unknown: 2))
  }

  @Test func aRecordTellsWhichEventItIs() {
    let event = SentEvent(trial: .max - 7, user: 19_999, number: 49)
    #expect(event.jti.utf8.count == 22 && SentEvent(jti: event.jti) == event)
    #expect(SentEvent(jti: "AAAA") == nil && SentEvent(jti: "!") == nil)
  }
}
