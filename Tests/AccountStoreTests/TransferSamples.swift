import AccountEvents
import AccountStore
import Cryptography
import EventLoop
import Testing

/// Two teams between which an app moves; the first is that of `Sample.account`.
enum Transfer {
  static let team = Sample.account().team
  static let otherTeam = Sample.valid(TeamID("Z9Y8X7W6V5"))

  static func plan(
    _ name: String, _ side: TransferPlan.Side, at seconds: Int64 = 1, acceptedAt: Timestamp? = nil
  ) -> TransferPlan {
    let (own, other) = side == .sending ? (team, otherTeam) : (otherTeam, team)
    return Sample.valid(
      TransferPlan(
        name, side, team: own, otherTeam: other, client: Sample.client, createdAt: Sample.time(seconds),
        acceptedAt: acceptedAt))
  }

  static let sending = plan("to-the-other", .sending)
  static let receiving = plan("from-the-other", .receiving)

  static func identifier(_ number: Int) -> TransferSubject {
    Sample.valid(TransferSubject("00187\(number).r-identifier-of-a-person-\(number)"))
  }

  /// Who a person is at the team that receives.
  static func account(_ number: Int = 1) -> Account {
    Account(team: otherTeam, subject: Sample.valid(AppleSubject("\(number).other-subject-of-a-person.\(number)")))
  }

  static func address(_ number: Int = 1) -> RelayAddress {
    Sample.valid(RelayAddress("\(number)-new-address@privaterelay.example.com"))
  }

  static func key(_ number: Int) -> String { "key-of-a-customer-\(number)" }

  /// Users of the sending side.
  static func sent(_ numbers: some Sequence<Int>) -> [NewTransferUser] {
    numbers.map { NewTransferUser(key: key($0), subject: Sample.account($0).subject) }
  }

  /// Users of the receiving side.
  static func received(_ numbers: some Sequence<Int>) -> [NewTransferUser] {
    numbers.map { NewTransferUser(key: key($0), transferSubject: identifier($0)) }
  }

  /// Apple's answer about a person to the team that sends.
  static func identified(_ number: Int64, as person: Int? = nil) -> TransferResult {
    TransferResult(number, .identifier(identifier(person ?? Int(number))))
  }

  /// Apple's answer about a person to the team that receives.
  static func found(_ number: Int64, as person: Int? = nil) -> TransferResult {
    let person = person ?? Int(number)
    return TransferResult(
      number, .account(account(person).subject, address: address(person), isPrivate: true))
  }

  static func lease(_ plan: TransferPlan, of holder: String = "a") -> Lease {
    Lease(name: plan.lease, holder: holder, until: (Sample.time(0) + Lease.length).milliseconds)
  }
}

extension AccountStore {
  /// Adds a plan with users, and takes its lease.
  @Loop
  func begin(_ plan: TransferPlan, with users: [NewTransferUser]) async throws {
    #expect(try await add(plan) == nil)
    #expect(try await add(users, to: plan) == users.count)
    #expect(try await take(Transfer.lease(plan), after: nil))
  }

  /// Writes answers, under the lease that `begin` has taken.
  @Loop
  func record(_ results: [TransferResult], of plan: TransferPlan) async throws -> [TransferUser.State]? {
    try await record(results, of: plan, under: Transfer.lease(plan), at: Sample.time(10))
  }

  /// All users of a plan.
  @Loop
  func users(of plan: TransferPlan) async throws -> [TransferUser] {
    try await transferUsers(of: plan, in: nil, after: 0, limit: 10_000)
  }

  /// Erases an account, as of that second.
  @Loop
  func erase(_ account: Account, at seconds: Int64, _ id: String = "gone", isFinal: Bool = true) async throws {
    let event = Sample.event(id, of: account, hash: hash(of: account), at: seconds, severity: 2)
    let settled = try await settle(
      [event.settled(by: Sample.eraser, .eraseAccount(isFinal: isFinal))], at: Sample.time(10_000))
    #expect(settled == [.applied])
  }
}
