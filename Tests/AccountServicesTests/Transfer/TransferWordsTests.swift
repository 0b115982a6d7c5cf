import AccountEvents
import AccountStore
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleID

/// What an operator is told of a run that has ended.
@Suite struct TransferWordsTests {
  /// A key of either team.
  static func keys(of team: TeamID) -> [KeyID] {
    [KeyID(team == TransferRig.ours ? "OURS123456" : "THEIRS1234")].compactMap(\.self)
  }

  @Test func saysOfEveryErrorWhatItIsAndOfWhichTeam() throws {
    let cases: [(AppleTokenError.Code, [String])] = [
      (.noKey, ["no key: none of team TEAM is configured: set teams.TEAM.key-id and teams.TEAM.private-key"]),
      (.unsigned, ["the key: key KEY of team TEAM does not sign: DETAIL"]),
      (.invalidClient, ["wrong key, team or app", "take key KEY as one of team TEAM for APP", "teams.TEAM.key-id"]),
      (.unauthorizedClient, ["wrong app: Apple does not let APP, with key KEY of team TEAM"]),
      (.invalidScope, ["wrong team: Apple does not let team TEAM move users of APP", "DETAIL"]),
      (.forbidden, ["wrong team: Apple does not let team TEAM move users of APP", "DETAIL"]),
      (.certificate, ["is not Apple, by its certificate", "DETAIL"]),
      (.invalidGrant, ["Apple takes no request of APP from team TEAM with key KEY: invalid-grant: DETAIL"]),
      (.malformedRequest, ["Apple takes no request of APP from team TEAM"]),
      (.unsupportedGrantType, ["Apple takes no request of APP from team TEAM"]),
    ]
    for (team, key) in [(TransferRig.ours, "OURS123456"), (TransferRig.theirs, "THEIRS1234")] {
      for (code, expected) in cases {
        let words = try words(.misconfigured(AppleTokenError(code, "what Apple says"), of: team))
        for part in expected {
          let part = part.replacing("TEAM", with: team.text).replacing("KEY", with: key)
            .replacing("APP", with: ValidationRig.app.text).replacing("DETAIL", with: "what Apple says")
          #expect(words.contains(part), "\(code): \(words)")
        }
      }
    }
    let all = Set(cases.map(\.0))
    for code in AppleTokenError.Code.allCases {
      #expect(AppleTokenError(code, "").needsOperator == all.contains(code), "\(code): who needs an operator has words")
    }
  }

  @Test func saysOfEveryOtherEndingWhatToDo() throws {
    let cases: [(TransferRun.Ending, [String])] = [
      (.leaseLost, ["another process has taken over the plan summer"]),
      (.planGone, ["the plan summer was removed"]), (.notAccepted, ["Before it is accepted, Apple exchanges nothing"]),
      (.windowOver, ["the 60 days are"]), (.appleFails(AppleTokenError(.deadline, "late")), ["deadline: late"]),
      (.allRefused, ["they wait as before", "--believe-refusals", "\(TransferRig.theirs)"]),
      (.useless, ["of no use", "a wrong recipient", "\(TransferRig.theirs)"]),
      (.allConflicts, ["siwa migrate status summer --refused", "--believe-conflicts"]),
      (.store(AccountStoreError(.unavailable, "away")), ["away"]),
    ]
    for (ending, parts) in cases {
      let words = try words(ending)
      for part in parts { #expect(words.contains(part), "\(ending.name): \(words)") }
    }
    for ending in [TransferRun.Ending.complete, .ended] {
      #expect(ending.words(of: try Self.plan(), keys: Self.keys(of:), at: VirtualClock.start) == nil)
    }
  }

  private func words(_ ending: TransferRun.Ending) throws -> String {
    try #require(ending.words(of: try Self.plan(), keys: Self.keys(of:), at: VirtualClock.start))
  }

  private static func plan() throws -> TransferPlan {
    try #require(
      TransferPlan(
        "summer", .sending, team: TransferRig.ours, otherTeam: TransferRig.theirs, client: ValidationRig.app,
        createdAt: VirtualClock.start, acceptedAt: TransferRig.accepted))
  }
}
