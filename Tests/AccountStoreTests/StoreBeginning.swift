import AccountStore
import Testing

extension AccountStoreAdministration {
  /// Has many make the store at once; says how many have, of how many that came back.
  func beginAtOnce(_ count: Int) async throws -> (made: Int, of: Int) {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<count { group.addTask { try await begin() } }
      var result = (made: 0, of: 0)
      for try await isMade in group {
        result.of += 1
        if isMade { result.made += 1 }
      }
      return result
    }
  }

  /// A migration makes no store: where a volume is not mounted, it would be a second one.
  func expectNoneToMigrate(sourceLocation: SourceLocation = #_sourceLocation) async {
    let error = await #expect(throws: AccountStoreError.self, sourceLocation: sourceLocation) { try await migrate() }
    #expect(error?.code == .notMigrated, sourceLocation: sourceLocation)
    #expect(error?.detail.hasSuffix(StoreBeginning.words) == true, sourceLocation: sourceLocation)
  }
}

/// What is said where there is no store.
enum StoreBeginning {
  /// How the error ends.
  static let words =
    "`siwa store begin` makes it, once; where there was one, its volume may not be mounted, or the setting names another place"
}
