import AccountEvents
import AppleID
import ConsumerSupport
import EventLoop
import JSON
import Telemetry
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleSimulator

/// A sign-in of a course, at a process of its own.
@Loop
final class CourseSignIn {
  /// What came of it.
  @Loop
  private final class Outcome {
    var result: Result<SignedIn, Problem>?
  }

  let number: Int
  private(set) var party = Party {}
  /// The step at which it was begun.
  private(set) var begunAt: Int?
  /// The step at which the store got to know of its tokens.
  private(set) var recordedAt: Int?
  /// When Apple granted its tokens, by Apple's clock.
  var grantedAt: Timestamp?
  /// The refresh tokens that Apple granted.
  var tokens: Set<String> = []
  /// Whether Apple has ended it with others, which nobody could help.
  var isOvertaken = false
  private unowned let course: Course
  private let store: WatchedStore
  private let registry = MetricsRegistry()
  private let signIns: SignIns
  private let outcome = Outcome()
  private var takeBacks = 0
  /// What a sign-in leaves behind waits here.
  private var held: CheckedContinuation<Void, Never>?
  private var isFree = false

  init(_ number: Int, in course: Course, named name: String, now: @escaping @Sendable () -> Timestamp) throws {
    (self.number, self.course) = (number, course)
    let rig = course.rig
    store = WatchedStore(rig.store)
    signIns = SignIns(
      store, try rig.endpoints(for: "\(number)", in: name), try rig.identityTokens(at: now), course.groups,
      metrics: AccountsMetrics(registry), logger: rig.logger, now: now, random: { 0 })
    party = Party { [weak self] in await self?.sign() }
    store.gate = { [weak self] call in
      switch call {
      case .recordSignIn: await self?.party.pause()
      case .knowledge: await self?.hold()
      default: break
      }
    }
  }

  /// Whether it was begun, and the store knows of no end.
  var isUnderWay: Bool { begunAt != nil && outcome.result == nil }
  /// Whether the application was told that the person is signed in.
  var hasSucceeded: Bool {
    if case .success = outcome.result { true } else { false }
  }
  /// Whether a token waits to be taken back.
  private var leavesSomething: Bool {
    !String(decoding: registry.render(), as: UTF8.self).contains("\nsiwa_accounts_tokens_waiting 0\n")
  }

  /// Goes on to where others may come first.
  func step() async {
    if begunAt == nil { begunAt = course.step }
    await party.step()
    if recordedAt == nil, store.counts[.recordSignIn, default: 0] > 0, !isUnderWay { recordedAt = course.step }
  }

  /// Goes on to its end, if it was begun.
  func finish() async {
    isFree = true
    held?.resume()
    held = nil
    if begunAt != nil { await party.finish() }
  }

  /// Has what it has left behind come to its end.
  func drain() async { await signIns.drain() }

  /// Has what it has left behind be looked after once.
  func takeBack(beside other: CourseSignIn) async throws {
    guard leavesSomething, takeBacks == 0 || held != nil else { return }
    try await until(every: .milliseconds(1)) { held != nil }
    takeBacks += 1
    let asked = store.counts[.signInUnderWay, default: 0]
    held?.resume()
    held = nil
    // While the person signs in elsewhere, it comes back later.
    try await until(every: .milliseconds(1)) {
      !leavesSomething || other.isUnderWay && store.counts[.signInUnderWay, default: 0] > asked
    }
  }

  private func hold() async {
    if isFree { return }
    await withCheckedContinuation { held = $0 }
  }

  private func sign() async {
    do throws(Problem) {
      let request = try course.newRequest()
      outcome.result = .success(try await signIns.signIn(request, named: nil, by: "shop"))
    } catch {
      outcome.result = .failure(error)
    }
  }
}

extension Course {
  /// What the app has got from Apple.
  fileprivate func newRequest() throws(Problem) -> SignInRequest {
    do {
      let code = try apple.signIn(person, to: CourseRig.app)
      let token = try apple.identityToken(of: person, for: CourseRig.app, nonce: nil, binding: ("c_hash", code))
      let body: JSONValue = [
        "identityToken": .string(token), "authorizationCode": .string(code), "clientId": .string(CourseRig.app),
      ]
      return try unsafe SignInRequest(reading: body.bytes.span.bytes)
    } catch {
      throw Problem(.malformed, "\(error)")
    }
  }
}
