import AccountEvents
import AppleID
import EventLoop
import Testing

@Suite struct FetchPlanTests {
  private static let pace = FetchPace(
    refresh: .seconds(100), pause: .seconds(10), firstRetry: .seconds(1), longestRetry: .seconds(5))
  private static let start = MonotonicTime(nanoseconds: 0)
  private static let none = AppleKeySet.none

  private func id(_ text: String) throws -> KeyID { try #require(KeyID(text)) }

  @Test func answersForEveryKeyThatTheLastFetchWasMadeFor() throws {
    var plan = FetchPlan(Self.pace, at: Self.start)
    #expect(plan.step(for: try id("x"), at: Self.start) == .wait)
    plan.began(for: [try id("x"), try id("y")])
    #expect(plan.step(for: try id("z"), at: Self.start) == .wait)
    plan.succeeded(with: Self.none, at: Self.start, jitter: 0)
    #expect(plan.step(for: try id("x"), at: Self.start) == .absent)
    #expect(plan.step(for: try id("y"), at: Self.start) == .absent)
    #expect(plan.step(for: try id("z"), at: Self.start) == .notBefore(Self.start + .seconds(10)))
    #expect(plan.step(for: try id("x"), at: Self.start + .seconds(10)) == .wait)

    // While the next one is on its way, what the last one said still holds.
    plan.began(for: [])
    #expect(plan.step(for: try id("x"), at: Self.start + .seconds(100)) == .absent)
    plan.succeeded(with: Self.none, at: Self.start + .seconds(100), jitter: 0)
    #expect(plan.step(for: try id("x"), at: Self.start + .seconds(100)) == .notBefore(Self.start + .seconds(110)))
  }

  @Test func knowsNothingAfterAFetchThatFailed() throws {
    var plan = FetchPlan(Self.pace, at: Self.start)
    plan.began(for: [try id("x")])
    plan.failed(at: Self.start, jitter: 0)
    #expect(plan.step(for: try id("x"), at: Self.start) == .notBefore(Self.start + .seconds(1)))
    #expect(plan.due == Self.start + .seconds(1))
  }

  @Test func remembersABoundedNumberOfKeys() throws {
    var plan = FetchPlan(Self.pace, at: Self.start)
    let ids = try (0..<100).map { try id("x\($0)") }
    plan.began(for: ids)
    plan.succeeded(with: Self.none, at: Self.start, jitter: 0)
    #expect(ids.filter { plan.step(for: $0, at: Self.start) == .absent }.count == FetchPlan.maximumMissing)
  }

  @Test func looksUpNoLaterThanItRefreshes() throws {
    var plan = FetchPlan(
      FetchPace(refresh: .seconds(5), pause: .seconds(10), firstRetry: .seconds(1), longestRetry: .seconds(5)),
      at: Self.start)
    plan.began(for: [])
    plan.succeeded(with: Self.none, at: Self.start, jitter: 0)
    #expect(plan.allowed == Self.start + .seconds(5))
  }
}
