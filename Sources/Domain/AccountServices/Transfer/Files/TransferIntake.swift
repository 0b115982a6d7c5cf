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
  /// What stands for each key of the plan's users up to `last`: the first half of its SHA-256, 32 MB for a million.
  private var keys: Set<UInt128> = []
  private var last: Int64 = 0

  /// An intake of lines.
  package init(into plan: TransferPlan, in store: any TransferStore) { (self.plan, self.store) = (plan, store) }

  /// Takes some of the lines.
  package mutating func add(_ users: [(line: Int64, user: NewTransferUser)]) async throws(AccountStoreError) {
    var known = try await store.knownKeys(of: users.map(\.user), in: plan)
    // Whoever is known already is brought again and again, as others sign up: then the plan's keys are not needed.
    while known.contains(nil) {
      // Another process may take users into the same plan.
      if try await readKeys() { known = try await store.knownKeys(of: users.map(\.user), in: plan) }
      let judged = judge(users, known)
      guard let added = try await store.add(judged.taken, to: plan, knowing: last) else { continue }
      (faults, last) = (judged.faults, added.last)
      keys.formUnion(judged.keys)
      new += Int64(added.new)
      return
    }
    faults = judge(users, known).faults
  }

  /// Who is to be taken of lines whose persons the plan has under `known`, and what is wrong with the others.
  private func judge(
    _ users: [(line: Int64, user: NewTransferUser)], _ known: [String?]
  ) -> (taken: [NewTransferUser], keys: Set<UInt128>, faults: KeyFaults) {
    var (taken, fresh, faults): ([NewTransferUser], Set<UInt128>, KeyFaults) = ([], [], self.faults)
    var keyOfTaken: [String: String] = [:]
    for ((line, user), known) in zip(users, known) {
      let code = Self.code(of: user.key)
      if let known = known ?? keyOfTaken[user.person] {
        faults.note(line, user.key, known: known)
      } else if !keys.contains(code), fresh.insert(code).inserted {
        taken.append(user)
        keyOfTaken[user.person] = user.key
      } else {
        faults.note(line, shared: user.key)
      }
    }
    return (taken, fresh, faults)
  }

  /// Reads the keys of users that were not read yet. Returns whether there are any.
  private mutating func readKeys() async throws(AccountStoreError) -> Bool {
    let first = last
    while true {
      let users = try await store.transferUsers(of: plan, in: nil, after: last, limit: Self.page)
      guard let end = users.last else { return last > first }
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
