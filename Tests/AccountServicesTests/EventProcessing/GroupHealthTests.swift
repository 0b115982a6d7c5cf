import AccountServices
import EventLoop
import Testing

/// When a consumer gets its share.
@Suite struct GroupHealthTests {
  private let begin = MonotonicTime(nanoseconds: 1_000_000_000)

  @Test func whoHasNoPlaceInTheGroupIsNotReadyAndSaysWhatKafkaSaid() {
    var health = GroupHealth()
    #expect(health.state(isMember: false, at: begin) == .notReady(cause: "not in the group"))
    health.failed("notAuthorized", at: begin)
    #expect(health.state(isMember: false, at: begin) == .notReady(cause: "not in the group: notAuthorized"))
    #expect(health.state(isMember: true, at: begin) == .ready)
  }

  @Test func errorsCountOnceTheyLast() {
    var health = GroupHealth()
    for second in 0..<5 { health.failed("other", at: begin + .seconds(second)) }
    #expect(health.state(isMember: true, at: begin + .seconds(4)) == .ready)
    #expect(health.state(isMember: true, at: begin + .seconds(5)) == .notReady(cause: "other"))
    // Nothing comes, and nothing fails: a quiet topic.
    #expect(health.state(isMember: true, at: begin + .seconds(15)) == .ready)
    // One now and then is none of a row.
    health.failed("other", at: begin + .seconds(60))
    #expect(health.state(isMember: true, at: begin + .seconds(61)) == .ready)
  }

  @Test func theSameErrorIsNewsOnce() {
    var health = GroupHealth()
    let errors = [("other", 0), ("other", 9), ("fenced", 10), ("other", 11), ("other", 30)]
    let news = errors.map { cause, second in health.failed(cause, at: begin + .seconds(second)) }
    #expect(news == [true, false, true, true, true])
  }

  @Test func whatIsReadEndsAFailure() {
    var health = GroupHealth()
    for second in 0..<10 { health.failed("other", at: begin + .seconds(second)) }
    health.succeeded()
    #expect(health.state(isMember: true, at: begin + .seconds(10)) == .ready)
  }
}
