package import AccountEvents
package import AccountStore
package import Cryptography

extension WatchedStore {
  package func add(_ plan: TransferPlan) async throws(AccountStoreError) -> TransferPlan? {
    try await watch(.addPlan) { () throws(AccountStoreError) in try await store.add(plan) }
  }

  package func transferPlans() async throws(AccountStoreError) -> [TransferPlan] {
    try await watch(.transferPlans) { () throws(AccountStoreError) in try await store.transferPlans() }
  }

  package func update(_ plan: TransferPlan) async throws(AccountStoreError) -> Bool {
    try await watch(.updatePlan) { () throws(AccountStoreError) in try await store.update(plan) }
  }

  package func removePlan(_ name: String) async throws(AccountStoreError) -> Bool {
    try await watch(.removePlan) { () throws(AccountStoreError) in try await store.removePlan(name) }
  }

  package func add(
    _ users: [NewTransferUser], to plan: TransferPlan, knowing number: Int64?
  ) async throws(AccountStoreError) -> (new: Int, last: Int64)? {
    try await watch(.addUsers) { () throws(AccountStoreError) in
      try await store.add(users, to: plan, knowing: number)
    }
  }

  package func knownKeys(
    of users: [NewTransferUser], in plan: TransferPlan
  ) async throws(AccountStoreError) -> [String?] {
    try await watch(.transferUsers) { () throws(AccountStoreError) in
      try await store.knownKeys(of: users, in: plan)
    }
  }

  package func addAccounts(
    to plan: TransferPlan, after place: AccountID?, limit: Int
  ) async throws(AccountStoreError) -> (new: Int, place: AccountID?) {
    try await watch(.addAccounts) { () throws(AccountStoreError) in
      try await store.addAccounts(to: plan, after: place, limit: limit)
    }
  }

  package func noteImport(
    _ digest: SHA256Digest, into plan: TransferPlan, at time: Timestamp
  ) async throws(AccountStoreError) -> Bool {
    try await watch(.noteImport) { () throws(AccountStoreError) in
      try await store.noteImport(digest, into: plan, at: time)
    }
  }

  package func hasImported(
    _ digest: SHA256Digest, into plan: TransferPlan
  ) async throws(AccountStoreError) -> Bool {
    try await watch(.noteImport) { () throws(AccountStoreError) in
      try await store.hasImported(digest, into: plan)
    }
  }

  package func transferUsers(
    of plan: TransferPlan, in state: TransferUser.State?, after number: Int64, limit: Int
  ) async throws(AccountStoreError) -> [TransferUser] {
    try await watch(.transferUsers) { () throws(AccountStoreError) in
      try await store.transferUsers(of: plan, in: state, after: number, limit: limit)
    }
  }

  package func record(
    _ results: [TransferResult], of plan: TransferPlan, under lease: Lease, at time: Timestamp
  ) async throws(AccountStoreError) -> [TransferUser.State]? {
    try await watch(.recordTransfers) { () throws(AccountStoreError) in
      try await store.record(results, of: plan, under: lease, at: time)
    }
  }

  package func note(
    _ decision: TransferDecision, of number: Int64, in plan: TransferPlan
  ) async throws(AccountStoreError) -> TransferUser? {
    try await watch(.recordTransfers) { () throws(AccountStoreError) in
      try await store.note(decision, of: number, in: plan)
    }
  }

  package func census(of plan: TransferPlan) async throws(AccountStoreError) -> TransferCensus {
    try await watch(.transferCensus) { () throws(AccountStoreError) in try await store.census(of: plan) }
  }

  package func recognizedTransfer(
    of account: Account, claiming claim: TransferClaim
  ) async throws(AccountStoreError) -> RecognizedTransfer? {
    try await watch(.recognizedTransfer) { () throws(AccountStoreError) in
      try await store.recognizedTransfer(of: account, claiming: claim)
    }
  }

  package func recognizedTransfer(
    of account: Account, with client: ClientID
  ) async throws(AccountStoreError) -> RecognizedTransfer? {
    try await watch(.recognizedTransfer) { () throws(AccountStoreError) in
      try await store.recognizedTransfer(of: account, with: client)
    }
  }
}
