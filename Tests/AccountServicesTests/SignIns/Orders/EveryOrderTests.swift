import AccountEvents
import EventLoop
import TestSupport
import Testing

/// Sign-ins, a deletion and notifications of one person at the same time: no token is left of a sign-in that was ended, and
/// none of a fresh one is ended.
///
/// The sign-ins, the deletions, the token revoker, the data eraser and the store are the real ones; between two of their steps
/// a test has others come first.
@Loop @Suite(.timeLimit(.minutes(30))) struct EveryOrderTests {
  @Test(arguments: CourseRig.Database.present)
  func aSignInAndADeletionInEveryOrder(_ database: CourseRig.Database) async throws {
    let orders = CoursePlan.orders(CoursePlan.signIn(1), CoursePlan.deletion)
    try await judge(
      Self.clocks.flatMap { pace, skew in orders.map { CoursePlan(steps: $0, pace: pace, skew: skew) } }, database)
  }

  @Test(arguments: CourseRig.Database.present, [AccountEvent.Kind.consentRevoked, .accountDelete])
  func aSignInAndWhatHappensAtAppleInEveryOrder(
    _ database: CourseRig.Database, _ kind: AccountEvent.Kind
  ) async throws {
    let orders = CoursePlan.orders(CoursePlan.signIn(1), CoursePlan.notification)
    try await judge(
      Self.clocks.flatMap { pace, skew in orders.map { CoursePlan(steps: $0, pace: pace, skew: skew, kind: kind) } },
      database)
  }

  /// The revoker is held between what it decides about the echo of its own revocation and what it writes down of that, too.
  @Test(arguments: CourseRig.Database.present)
  func aSignInAndTheEchoOfADeletionInEveryOrder(_ database: CourseRig.Database) async throws {
    let deletion: [CoursePlan.Steps] =
      [[.ask]] + Array(repeating: [.revoker], count: 4) + [[.arrive, .revoker], [.eraser], [.revoker]]
    let orders = CoursePlan.orders(CoursePlan.signIn(1), deletion)
    try await judge(
      Self.clocks.flatMap { pace, skew in orders.map { CoursePlan(steps: $0, pace: pace, skew: skew) } },
      database)
  }

  /// A sign-in is taken back that Apple's whole seconds put before a withdrawn consent; in the same second the person signs in
  /// once more, and then Apple tells of the revocation.
  @Test(arguments: CourseRig.Database.present)
  func whoSignsInInTheSecondOfARevocationOfOursStays(_ database: CourseRig.Database) async throws {
    let first: CoursePlan.Steps = [.happen, .signIn(1), .arrive, .revoker, .revoker, .eraser, .signIn(1), .signIn(1)]
    let second: CoursePlan.Steps = [.takeBack(1), .signIn(2), .signIn(2), .signIn(2)]
    let echo: CoursePlan.Steps = [.arrive, .revoker, .revoker, .eraser]
    try await judge([CoursePlan(steps: first + second + echo, pace: .milliseconds(15), standing: 2)], database)
  }

  /// More orders than can be tried: some of them, and others the next time.
  @Test(arguments: CourseRig.Database.present)
  func twoSignInsADeletionAndWhatHappensAtAppleInManyOrders(_ database: CourseRig.Database) async throws {
    var random = SeededRandom()
    let seed = random.seed
    let plans = SeededRandom.rounds(250).map { number in
      var all = [1, 2].map { CoursePlan.signIn($0) + [[.takeBack($0)], [.takeBack($0)]] }
      all += [CoursePlan.deletion + [[.revoker], [.revoker], [.eraser]]]
      if number % 4 > 0 { all.append(CoursePlan.notification + [[.arrive], [.revoker], [.eraser]]) }
      let (pace, skew) = Self.clocks[number % Self.clocks.count]
      return CoursePlan(
        steps: CoursePlan.order(all, by: &random), pace: pace, skew: skew,
        kind: number % 4 > 1 ? .accountDelete : .consentRevoked, hasOwnConsent: number % 8 > 3)
    }
    try await judge(plans, database, "SEED=\(seed)")
  }

  /// What passes between two steps, and how far Apple's clock is ahead of ours.
  private static let clocks: [(Duration, Duration)] = [
    (.milliseconds(10), .zero), (.milliseconds(300), .zero), (.milliseconds(1500), .zero),
    (.milliseconds(300), .seconds(-5)), (.milliseconds(300), .seconds(5)),
  ]

  private func judge(
    _ plans: [CoursePlan], _ database: CourseRig.Database, _ remark: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    var findings: [String: [CoursePlan]] = [:]
    try await CourseRig.run(database) { rig in
      try await withThrowingTaskGroup(of: (CoursePlan, [String]).self) { group in
        var begun = 0
        func begin() {
          let (number, plan) = (begun, plans[begun])
          begun += 1
          group.addTask(executorPreference: Loop.executor) {
            (plan, try await rig.run(plan, named: "person-\(number)"))
          }
        }
        for _ in 0..<min(8, plans.count) { begin() }
        while let (plan, found) = try await group.next() {
          for finding in found { findings[finding, default: []].append(plan) }
          if begun < plans.count { begin() }
        }
      }
    }
    for (finding, plans) in findings.sorted(by: { $0.key < $1.key }) {
      Issue.record(
        "\(finding): \(plans.count) orders, such as \(plans[0]) \(remark)", sourceLocation: sourceLocation)
    }
  }
}
