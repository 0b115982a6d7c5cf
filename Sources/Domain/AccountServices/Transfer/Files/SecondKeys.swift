import AccountEvents
package import AccountStore

/// Lines that name somebody whom the plan has under another key already. The first key stays: which one is right, only whoever
/// wrote the lines can say.
package struct SecondKeys: Sendable, Hashable {
  /// A line, by what an operator finds it with: nothing of the person.
  package struct Line: Sendable, Hashable, CustomStringConvertible {
    /// Its number, counted from 1.
    package let number: Int64
    /// The key that stands there.
    package let key: String
    /// The key that the plan has.
    package let known: String
    /// For an operator.
    package var description: String {
      "line \(number): key \(key): the plan has the same person under the key \(known)"
    }
  }

  /// So many lines are told at most.
  static let most = 20

  /// How many lines there were.
  package private(set) var count: Int64 = 0
  /// The first of them, 20 at most.
  package private(set) var first: [Line] = []

  /// None yet.
  package init() {}

  /// Notes a line, unless it has the key that is known, byte for byte.
  mutating func note(_ number: Int64, _ key: String, _ known: String) {
    guard !key.utf8.elementsEqual(known.utf8) else { return }
    count += 1
    if first.count < Self.most { first.append(Line(number: number, key: key, known: known)) }
  }
}

extension TransferStore {
  /// Adds the users that lines name, and notes those whom the plan has under another key. Returns how many are new.
  package func add(
    _ users: [(line: Int64, user: NewTransferUser)], to plan: TransferPlan, noting second: inout SecondKeys
  ) async throws(AccountStoreError) -> Int {
    let people = users.map(\.user)
    let new = try await add(people, to: plan)
    // Nobody of them was there, nor twice among them.
    if new == people.count { return new }
    let keys = try await knownKeys(of: people, in: plan)
    for (user, known) in zip(users, keys) {
      if let known { second.note(user.line, user.user.key, known) }
    }
    return new
  }
}

extension TransferPlan {
  /// Whether the other one is a receiving plan, too, of the same app from the same team: what both led to could be two keys
  /// for one account.
  package func isRival(of other: TransferPlan) -> Bool {
    name != other.name && side == .receiving && other.side == .receiving && client == other.client
      && (team, otherTeam) == (other.team, other.otherTeam)
  }
}
