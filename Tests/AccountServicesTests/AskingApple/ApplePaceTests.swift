import AccountStore
import EventLoop
import TestSupport
import Testing

@testable import AccountServices

/// When Apple may be asked next, and who may ask.
@Suite struct ApplePaceTests {
  private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

  @Test func theAgreedRateIsHeldThoughTimersAreLate() {
    var random = SeededRandom(seed: 7)
    var (pace, now) = (ApplePace(500, at: Self.start), Self.start)
    for _ in 0..<100_000 {
      let slot = pace.next(at: now)
      pace.take(at: now, random: 0)
      now = max(now, slot) + .microseconds(Int.random(in: 0...3000, using: &random))
    }
    #expect(abs((now - Self.start) / .seconds(200) - 1) < 0.02)
  }

  @Test func whatWasMissedForLongIsNotMadeUpForAtOnce() {
    var pace = ApplePace(10, at: Self.start)
    let now = Self.start + .seconds(3600)
    var count = 0
    while pace.next(at: now) <= now {
      pace.take(at: now, random: 0)
      count += 1
    }
    #expect(count <= 2)
  }

  /// One token a day: a process that lives for an hour asks about it all the same.
  @Test func theFirstIsNotWaitedFor() {
    var pace = ApplePace(50, at: Self.start)
    pace.spread(1, over: .seconds(72_000))
    #expect(pace.next(at: Self.start) <= Self.start)
    pace.take(at: Self.start, random: 0.5)
    #expect(pace.next(at: Self.start + .seconds(3600)) > Self.start + .seconds(71_000))
  }

  @Test func tokensAreSpreadWithGapsThatDiffer() {
    var random = SeededRandom(seed: 11)
    var (pace, now) = (ApplePace(500, at: Self.start), Self.start)
    pace.spread(7200, over: .seconds(72_000))
    var gaps: [Duration] = []
    for _ in 0..<7200 {
      let slot = pace.next(at: now)
      pace.take(at: now, random: Double.random(in: 0...1, using: &random))
      gaps.append(slot - now)
      now = slot
    }
    #expect(abs((now - Self.start) / .seconds(72_000) - 1) < 0.02)
    #expect(Set(gaps).count > 7000 && gaps.dropFirst().allSatisfy { .seconds(4) ... .seconds(16) ~= $0 })
    // More of them than the agreed rate manages are as fast as agreed.
    pace.spread(1_000_000_000, over: .seconds(72_000))
    #expect(pace.rate == 500)
  }

  @Test func whoIsThrottledAsksLessAndThenMoreAgain() {
    var pace = ApplePace(100, at: Self.start)
    let first = pace.failed(at: Self.start, retryAfter: .seconds(30))
    #expect(first)
    // Those that were under way with it say the same.
    for _ in 0..<50 {
      let another = pace.failed(at: Self.start + .milliseconds(10), retryAfter: .seconds(30))
      #expect(!another)
    }
    #expect(pace.failures == 1 && pace.share == 0.5)
    #expect(pace.next(at: Self.start + .seconds(1)) == Self.start + .milliseconds(30_010))
    var now = Self.start + .seconds(31)
    for _ in 0..<20 {
      pace.failed(at: now, retryAfter: nil)
      now = now + .seconds(2)
    }
    #expect(pace.share == 1.0 / 64)
    #expect(pace.next(at: now) - now <= .seconds(300))
    for _ in 0..<40 {
      now = now + .seconds(11)
      pace.succeeded(at: now)
    }
    #expect(pace.share == 1 && pace.failures == 0)
  }

  @Test func aLeaseIsTakenOverByOnesOwnClockAlone() {
    var watch = LeaseWatch("b")
    func lease(_ until: Int64, of holder: String = "a") -> Lease {
      Lease(name: Lease.validation, holder: holder, until: until)
    }
    // Over for years by our wall clock: nobody looks at that.
    let looks: [(lease: Lease?, after: Int64, mayTake: Bool)] = [
      (nil, 0, true), (lease(0), 0, false), (lease(0), 29, false), (lease(1), 30, false), (lease(1), 59, false),
      (lease(1), 60, true), (lease(7, of: "b"), 60, true),
    ]
    for look in looks {
      let mayTake = watch.mayTake(look.lease, at: Self.start + .seconds(look.after))
      #expect(mayTake == look.mayTake, "\(look)")
    }
  }
}
