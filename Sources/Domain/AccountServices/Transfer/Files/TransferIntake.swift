import AccountEvents
package import AccountStore
import Cryptography
package import EventLoop

/// Takes the users that lines name into a plan: nobody under a second key, and nobody under a key that is somebody else's.
@Loop
package struct TransferIntake {
  private static let page = 512

  /// How many users are new.
  package private(set) var new: Int64 = 0
  /// The lines that were not taken.
  package private(set) var faults = KeyFaults()

  private let plan: TransferPlan
  private let store: any TransferStore
  /// What stands for each key of the plan: the first half of its SHA-256, 32 MB for a million. Nil before it is needed.
  private var keys: Set<UInt128>?

  /// An intake of lines.
  package init(into plan: TransferPlan, in store: any TransferStore) { (self.plan, self.store) = (plan, store) }

  /// Takes some of the lines.
  package mutating func add(_ users: [(line: Int64, user: NewTransferUser)]) async throws(AccountStoreError) {
    let known = try await store.knownKeys(of: users.map(\.user), in: plan)
    // Whoever is known already is brought again and again, as others sign up.
    if keys == nil, known.contains(nil) { keys = try await keysOfPlan() }
    var taken: [NewTransferUser] = []
    var keyOfTaken: [String: String] = [:]
    for ((line, user), known) in zip(users, known) {
      if let known = known ?? keyOfTaken[user.person] {
        faults.note(line, user.key, known: known)
      } else if keys?.insert(Self.code(of: user.key)).inserted == true {
        taken.append(user)
        keyOfTaken[user.person] = user.key
      } else {
        faults.note(line, shared: user.key)
      }
    }
    if !taken.isEmpty { new += Int64(try await store.add(taken, to: plan)) }
  }

  private func keysOfPlan() async throws(AccountStoreError) -> Set<UInt128> {
    var (keys, last): (Set<UInt128>, Int64) = ([], 0)
    while true {
      let users = try await store.transferUsers(of: plan, in: nil, after: last, limit: Self.page)
      guard let end = users.last else { return keys }
      last = end.number
      for user in users where user.reason != .damaged { keys.insert(Self.code(of: user.key)) }
    }
  }

  private static func code(of key: String) -> UInt128 {
    SHA256.digest(of: Array(key.utf8)).bytes.prefix(16).reduce(0) { $0 << 8 | UInt128($1) }
  }
}

extension NewTransferUser {
  /// Who it is: what tells the users of a side apart.
  fileprivate var person: String { subject?.text ?? transferSubject?.text ?? "" }
}
