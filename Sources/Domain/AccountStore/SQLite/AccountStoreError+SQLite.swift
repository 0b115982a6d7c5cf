import AccountEvents
import SQLite

extension AccountStoreError {
  /// What an error of the database means for the store.
  init(_ error: SQLiteError) {
    let code: Code =
      switch error.code {
      case .busy, .cantOpen, .ioError, .statementTimeout: .unavailable
      case .full: .full
      case .corrupt, .notADatabase, .unexpectedValue: .damaged
      case .constraint, .readOnly, .schema, .outOfMemory, .other: .failed
      }
    self.init(code, error.description)
  }

  /// What an error of the commit means: one that could not be synced may be there all the same after a crash.
  init(committing error: SQLiteError) {
    self = error.code == .ioError ? AccountStoreError(.uncertain, error.description) : AccountStoreError(error)
  }

  /// Runs what uses the database, and says what its failure means for the store.
  static func translating<Value>(_ body: () throws(SQLiteError) -> Value) throws(AccountStoreError) -> Value {
    do throws(SQLiteError) { return try body() } catch { throw AccountStoreError(error) }
  }
}

extension Row {
  /// The time in a column.
  func time(_ column: Int) throws(SQLiteError) -> Timestamp {
    guard let time = try timeIfPresent(column) else { throw .unexpectedValue("column \(column): no time") }
    return time
  }

  /// The time in a column that may be empty.
  func timeIfPresent(_ column: Int) throws(SQLiteError) -> Timestamp? {
    guard let milliseconds: Int64 = try value(column, as: Int64?.self) else { return nil }
    guard let time = Timestamp(milliseconds: milliseconds) else { throw .unexpectedValue("column \(column): no time") }
    return time
  }

  /// The number in a column that may be empty.
  func count(_ column: Int) throws(SQLiteError) -> Int? { try value(column, as: Int64?.self).map { Int(clamping: $0) } }

  /// The hash of an account in a column, whichever key it was made with.
  func hash(_ column: Int) throws(SQLiteError) -> AccountHash {
    guard let hash = AccountHash(try value(column, as: [UInt8].self)) else {
      throw .unexpectedValue("column \(column): no hash")
    }
    return hash
  }

  /// The hash of an account in a column, made with so many keys as another column says, as it is under the newest.
  func hash(_ column: Int, of generation: Int, _ hashing: HashChain) throws(SQLiteError) -> AccountHash {
    hashing.newest(of: try hash(column).bytes, generation: try self.generation(generation, hashing))
  }

  /// The move of such a hash to the newest key.
  func move(_ column: Int, of generation: Int, _ hashing: HashChain) throws(SQLiteError) -> HashMove {
    hashing.move(of: try hash(column).bytes, generation: try self.generation(generation, hashing))
  }

  private func generation(_ column: Int, _ hashing: HashChain) throws(SQLiteError) -> Int {
    guard let number = try count(column), 1...hashing.generation ~= number else {
      throw .unexpectedValue("column \(column): a number of keys that there never were")
    }
    return number
  }

  /// The case of a closed list in a column.
  func choice<Choice: RawRepresentable<String>>(_ column: Int) throws(SQLiteError) -> Choice {
    guard let choice = Choice(rawValue: try value(column)) else {
      throw .unexpectedValue("column \(column): a word that is not of the list")
    }
    return choice
  }
}

extension SQLiteError {
  /// The error of a column that holds something that nobody wrote there.
  static func malformed(_ name: String) -> SQLiteError {
    .unexpectedValue("\(name): not of the form in which it was written")
  }
}
