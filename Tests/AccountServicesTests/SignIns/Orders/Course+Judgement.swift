import AccountEvents
import AccountStore
import EventLoop

@testable import AccountServices

/// What has to be true of a course at its end.
extension Course {
  /// What is wrong.
  func judge() async throws -> [String] {
    let living = living
    let held = Set(try await rig.store.tokens(of: account).map(\.token.value.text))
    let known = try await rig.store.knowledge(of: rig.store.id(of: account))
    let isErased = if case .known = known { false } else { true }
    let isBlurred = signIns.contains(where: isBlurred)
    let isOvertaken = signIns.contains(where: \.isOvertaken)
    let isExcused = signIns.contains { isSetBack($0) || isLate($0) }
    var findings: [String] = []
    // Each token of a person and an app stands for the same authorization: whoever ends one ends all.
    if !living.isEmpty, living.isDisjoint(with: held), !isExcused {
      findings.append("a token lives, and none that ends it is held")
    }
    if !held.isEmpty, held.isDisjoint(with: living), !isBlurred, !isOvertaken {
      findings.append("tokens are held, and all of them are dead")
    }
    for signIn in signIns where isFresh(signIn) || signIn.number == plan.standing {
      if !signIn.hasSucceeded { findings.append("a fresh sign-in has not succeeded") }
      if signIn.tokens.intersection(living).isDisjoint(with: held) { findings.append("a fresh sign-in was ended") }
      if isErased { findings.append("who has signed in anew was erased") }
    }
    if areAllEnded {
      if !living.isEmpty, !isExcused { findings.append("the token of a sign-in lives that was ended") }
      if !held.isEmpty { findings.append("a token is held of a sign-in that was ended") }
      if !isErased { findings.append("nobody was erased") }
    }
    return findings
  }

  /// Apple tells when somebody signed in in whole seconds, and we reckon by our clock which sign-in is later than a deletion.
  private var uncertainty: Duration { .seconds(1) + max(plan.skew, .zero - plan.skew) }

  /// Whether the person did something at Apple so close to a sign-in that nobody can say which came first.
  private func isBlurred(_ signIn: CourseSignIn) -> Bool {
    guard let happenedAt, let grantedAt = signIn.grantedAt else { return false }
    let between = grantedAt - happenedAt.time
    return max(between, .zero - between) < uncertainty
  }

  /// Whether that was so, and what the person did was told of before the store knew the sign-in's token: where it comes to
  /// know it while the event is carried out, both are over. Apple takes seconds to tell.
  private func isLate(_ signIn: CourseSignIn) -> Bool {
    guard let arrivedAt, isBlurred(signIn) else { return false }
    return signIn.recordedAt.map { $0 > arrivedAt } ?? true
  }

  /// Whether it counts as made when a deletion was asked for, as it was begun before that, though Apple granted its tokens
  /// after the person had withdrawn consent: whoever signs in again makes the deletion void, and the other ends its token.
  private func isSetBack(_ signIn: CourseSignIn) -> Bool {
    guard let begunAt = signIn.begunAt, let grantedAt = signIn.grantedAt, let askedAt, let happenedAt else {
      return false
    }
    return begunAt < askedAt && askedAt < happenedAt.step && happenedAt.time < grantedAt
  }

  /// Whether all that ends something was before the sign-in was begun, and Apple did not end it with others.
  private func isFresh(_ signIn: CourseSignIn) -> Bool {
    guard let begunAt = signIn.begunAt, signIn.grantedAt != nil, !signIn.isOvertaken, !isBlurred(signIn) else {
      return false
    }
    return askedAt.map { $0 < begunAt } ?? true && happenedAt.map { $0.step < begunAt } ?? true
  }

  /// Whether every sign-in was before something that ends it.
  private var areAllEnded: Bool {
    let begun = signIns.filter { $0.begunAt != nil }
    if let askedAt, begun.allSatisfy({ $0.begunAt.map { $0 < askedAt } ?? true }) { return true }
    guard let happenedAt else { return false }
    return begun.allSatisfy { signIn in
      !isBlurred(signIn) && signIn.grantedAt.map { $0 <= happenedAt.time } ?? true
    }
  }
}
