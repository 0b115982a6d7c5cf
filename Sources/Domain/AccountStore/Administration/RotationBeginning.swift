/// How a rotation of the hashing key begins.
enum RotationBeginning {
  /// The key is in use, and nothing is left to move.
  case done
  /// It was begun before, and goes on.
  case underWay
  /// The key is to be added, wrapped as it is here, and all rows are to be moved.
  case begins(StoreKeys.WrappedHashKey)
}

extension AccountStoreError {
  /// The rotation was brought to its end by somebody else, and the next one has begun.
  static let nextRotation = AccountStoreError(
    .failed, "its hashing key was replaced once more meanwhile: that rotation is another one")
}

extension StoreKeys {
  /// How a rotation to that key begins, or why it cannot; nil goes on with the one that is under way.
  func beginning(of key: HashKey?) throws(AccountStoreError) -> RotationBeginning {
    if state.isMoving {
      guard key.map({ $0.id == hashing.newestID }) ?? true else {
        throw AccountStoreError(
          .failed, "a rotation to hashing key \(hashing.newestID) is under way: finish that one first, without a file")
      }
      return .underWay
    }
    guard let key else {
      throw AccountStoreError(.failed, "no rotation of its hashing key is under way: name the file of the new key")
    }
    if key.id == hashing.newestID { return .done }
    guard !hashing.contains(key) else {
      throw AccountStoreError(.failed, "hashing key \(key.id) was replaced before: make a new one")
    }
    guard !master.isSame(as: key) else {
      throw AccountStoreError(.failed, "the file of the new hashing key holds a master key: make one of its own")
    }
    return .begins(
      try Self.wrap(key.bytes, number: hashing.generation + 1, hashing.name(ofNext: key), for: master))
  }
}
