import AccountEvents
import PostgreSQL

extension AccountStoreError {
  /// What an error of the database means for the store; `reading` where it cannot have changed anything.
  init(_ error: PostgreSQLError, reading: Bool = false) {
    let code: Code =
      switch error.code {
      // Whatever the connection was lost in may have come to its end.
      case _ where error.isUncertain && !reading: .uncertain
      // 53100: the disk is full.
      case .resources: error.sqlState == "53100" ? .full : .unavailable
      // XX001 and XX002: a table or an index is damaged.
      case .server: error.sqlState == "XX001" || error.sqlState == "XX002" ? .damaged : .unavailable
      // A row that came into being meanwhile is there the next time. Where nothing can be written, another server will
      // be the first one.
      case .connection, .unavailable, .serialization, .deadlock, .lock, .stalePlan, .statementTimeout, .unanswered,
        .exhausted, .uniqueViolation, .readOnly, .cancelled:
        .unavailable
      case .unexpectedValue: .damaged
      case .closed: .closed
      case .configuration, .authentication, .unknownDatabase, .constraint, .data, .statement, .permission, .raised,
        .tooLarge, .other:
        .failed
      }
    self.init(code, error.code == .closed ? "it was closed" : error.description)
  }
}

/// An account's hash as a row bears it. Whoever reads it may not know the key yet: first it is to be asked which keys hold.
struct GenerationHash {
  /// The hash, under any key.
  let hash: AccountHash
  /// With how many keys it was made.
  let generation: Int

  /// The hash under the newest of the keys that hold.
  func newest(in hashing: HashChain) throws(AccountStoreError) -> AccountHash {
    guard 1...hashing.generation ~= generation else {
      throw AccountStoreError(.damaged, "a row says that there were \(generation) hashing keys")
    }
    return hashing.newest(of: hash.bytes, generation: generation)
  }
}

extension Row {
  /// The time in a column.
  func time(_ column: Int) throws(PostgreSQLError) -> Timestamp {
    guard let time = try timeIfPresent(column) else { throw .unexpectedValue("column \(column): no time") }
    return time
  }

  /// The time in a column that may be empty.
  func timeIfPresent(_ column: Int) throws(PostgreSQLError) -> Timestamp? {
    guard let milliseconds: Int64 = try value(column, as: Int64?.self) else { return nil }
    guard let time = Timestamp(milliseconds: milliseconds) else {
      throw .unexpectedValue("column \(column): no time")
    }
    return time
  }

  /// The number in a column that may be empty.
  func count(_ column: Int) throws(PostgreSQLError) -> Int? {
    try value(column, as: Int64?.self).map { Int(clamping: $0) }
  }

  /// The case of a closed list in a column.
  func choice<Choice: RawRepresentable<String>>(_ column: Int) throws(PostgreSQLError) -> Choice {
    guard let choice = Choice(rawValue: try value(column)) else {
      throw .unexpectedValue("column \(column): a word that is not of the list")
    }
    return choice
  }

  /// The account's hash in a column, whichever key it was made with.
  func hash(_ column: Int) throws(PostgreSQLError) -> AccountHash {
    guard let hash = AccountHash(try value(column, as: [UInt8].self)) else {
      throw .unexpectedValue("column \(column): no hash")
    }
    return hash
  }

  /// The account's hash in a column, made with so many keys as another column says.
  func hash(_ column: Int, of generation: Int) throws(PostgreSQLError) -> GenerationHash {
    GenerationHash(hash: try hash(column), generation: try count(generation) ?? 0)
  }

  /// The move of such a hash to the newest key.
  func move(_ column: Int, of generation: Int, _ hashing: HashChain) throws(PostgreSQLError) -> HashMove {
    hashing.move(of: try hash(column).bytes, generation: try self.generation(generation, hashing))
  }

  private func generation(_ column: Int, _ hashing: HashChain) throws(PostgreSQLError) -> Int {
    guard let number = try count(column), 1...hashing.generation ~= number else {
      throw .unexpectedValue("column \(column): a number of keys that there never were")
    }
    return number
  }
}
