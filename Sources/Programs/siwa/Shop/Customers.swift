import AccountEvents
import EventLoop
import SQLite

/// The shop's own data: people who sign in with Apple, and buy two things.
@Loop
final class Customers {
  /// A customer as the shop knows them.
  struct Customer: Sendable {
    /// The address that Apple gave; nil where it gave none.
    let email: String?
    /// Whether it is one of Apple's private relay.
    let isRelayed: Bool
    /// What was bought.
    var purchases: [String]
  }

  /// Where they are.
  let path: String
  private let database: Database
  private let welcoming: Statement
  private let renewing: Statement
  private let buying: Statement
  private let count: Statement
  private let show: Statement
  private let bought: Statement

  /// Makes the database.
  init(in path: String) throws {
    self.path = path
    let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(5))
    try database.execute(
      """
      CREATE TABLE customer (
        id INTEGER PRIMARY KEY AUTOINCREMENT, apple_team TEXT NOT NULL, apple_sub TEXT NOT NULL UNIQUE, email TEXT,
        is_relayed INTEGER NOT NULL, signed_in_at INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE purchase (customer INTEGER NOT NULL REFERENCES customer, item TEXT NOT NULL) STRICT
      """)
    self.database = database
    welcoming = try database.prepare(
      """
      INSERT INTO customer (apple_team, apple_sub, email, is_relayed, signed_in_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO NOTHING RETURNING id
      """)
    renewing = try database.prepare(
      "UPDATE customer SET email = ?, is_relayed = ?, signed_in_at = ? WHERE apple_sub = ? RETURNING id")
    buying = try database.prepare("INSERT INTO purchase (customer, item) VALUES (?, ?)")
    count = try database.prepare("SELECT count(*) FROM customer WHERE apple_sub = ?")
    show = try database.prepare("SELECT email, is_relayed FROM customer WHERE id = ?")
    bought = try database.prepare("SELECT item FROM purchase WHERE customer = ?")
  }

  /// Makes the person a customer, or knows them again; returns their number. These few rows are written in a millisecond,
  /// for which the loop waits.
  @discardableResult
  func welcome(
    _ subject: AppleSubject, of team: TeamID, email: String?, isRelayed: Bool, at time: Timestamp
  ) throws -> Int64 {
    let (welcoming, renewing, buying) = (welcoming, renewing, buying)
    return try database.transaction { () throws(SQLiteError) in
      let relayed: Int64 = isRelayed ? 1 : 0
      let new: Int64? = try welcoming.first(team.text, subject.text, email, relayed, time.milliseconds) {
        row throws(SQLiteError) in try row.value(0)
      }
      if let new {
        for item in ["a book", "a lamp"] { try buying.run(new, item) }
        return new
      }
      let known: Int64? = try renewing.first(email, relayed, time.milliseconds, subject.text) {
        row throws(SQLiteError) in try row.value(0)
      }
      guard let known else { preconditionFailure("either there is such a customer, or there is none") }
      return known
    }
  }

  /// What the shop has of a customer; nil where they are erased.
  func customer(_ number: Int64) throws -> Customer? {
    var found: Customer? = try show.first(number) { row throws(SQLiteError) in
      Customer(email: try row.value(0), isRelayed: try row.value(1, as: Int64.self) != 0, purchases: [])
    }
    try bought.forEach(number) { row throws(SQLiteError) in found?.purchases.append(try row.value(0)) }
    return found
  }

  /// Whether the person is a customer.
  func knows(_ subject: AppleSubject) throws -> Bool {
    let number: Int64? = try count.first(subject.text) { row throws(SQLiteError) in try row.value(0) }
    return number != 0
  }

  /// What the data eraser is told about the database. Who has signed in since is another customer: see docs/erasure.md.
  static let erasure = """
          count: SELECT count(*) FROM customer WHERE apple_sub = $1 AND apple_team = $2 AND signed_in_at <= $3
          erase:
            - DELETE FROM purchase WHERE customer IN (
                SELECT id FROM customer WHERE apple_sub = $1 AND apple_team = $2 AND signed_in_at <= $3)
            - DELETE FROM customer WHERE apple_sub = $1 AND apple_team = $2 AND signed_in_at <= $3
          find: SELECT count(*) FROM customer WHERE apple_sub = $1 AND signed_in_at <= $3
    """
}
