import AccountServices
import Testing

/// Every state that a record can be in, and every step.
@Suite struct RecordStateTests {
  private static let states: [RecordState] = [
    .queued, .asking, .ready, .processing, .settling, .announcing, .burying, .backingOff(cause: "busy"), .done,
    .dropped,
  ]
  private static let steps: [RecordState.Step] = [
    .begun, .begunAtOnce, .needless, .unreadable, .open, .void, .settled(isToBeAnnounced: true),
    .settled(isToBeAnnounced: false), .taken, .decided, .failed(cause: "busy"), .hopeless, .reopened, .acknowledged,
    .given, .orphaned,
  ]

  /// What can happen to a record in each state, and in which it is then.
  private static let table: [RecordState: [RecordState.Step: RecordState]] = [
    .queued: [
      .begun: .asking, .begunAtOnce: .processing, .needless: .done, .unreadable: .burying, .hopeless: .burying,
      .given: .dropped,
    ],
    .asking: [
      .open: .ready, .void: .settling, .settled(isToBeAnnounced: true): .announcing,
      .settled(isToBeAnnounced: false): .done, .hopeless: .burying, .given: .dropped,
    ],
    .ready: [.taken: .processing, .hopeless: .burying, .given: .dropped],
    .processing: [
      .void: .settling, .decided: .settling, .failed(cause: "busy"): .backingOff(cause: "busy"), .hopeless: .burying,
    ],
    .settling: [
      .settled(isToBeAnnounced: true): .announcing, .settled(isToBeAnnounced: false): .done, .reopened: .queued,
      .failed(cause: "busy"): .backingOff(cause: "busy"), .hopeless: .burying, .orphaned: .dropped,
    ],
    .announcing: [.acknowledged: .done, .orphaned: .dropped],
    .burying: [.acknowledged: .done, .orphaned: .dropped],
    .backingOff(cause: "busy"): [
      .begun: .asking, .begunAtOnce: .processing, .hopeless: .burying, .given: .dropped,
    ],
    .done: [:], .dropped: [:],
  ]

  @Test(arguments: states) func aRecordTakesTheStepsOfTheTableAndNoOthers(_ state: RecordState) throws {
    let possible = try #require(Self.table[state])
    for step in Self.steps { #expect(state.following(step)?.next == possible[step], "\(state), \(step)") }
  }

  @Test func whatIsToBeDoneFollowsFromWhereAStepLeads() {
    let actions: [RecordState: RecordState.Action] = [
      .asking: .ask, .ready: .enlist, .processing: .process, .settling: .settle, .announcing: .announce,
      .burying: .bury, .backingOff(cause: "busy"): .backOff, .done: .finish, .dropped: .leave, .queued: .beginAgain,
    ]
    for state in Self.states {
      for step in Self.steps {
        guard let (next, action) = state.following(step) else { continue }
        #expect(actions[next] == action, "\(state), \(step)")
      }
    }
  }

  @Test func onlyWhatMayHaveHadAnEffectIsNotLeftToTheNextProcess() {
    for state in Self.states where state != .done && state != .dropped {
      #expect(state.isHolding == (state.following(.given) == nil), "\(state)")
    }
  }

  @Test func aStepThatCannotHappenIsAMistakeOfOurs() async {
    await #expect(processExitsWith: .failure) {
      var state = RecordState.queued
      _ = state.step(.acknowledged)
    }
  }
}
