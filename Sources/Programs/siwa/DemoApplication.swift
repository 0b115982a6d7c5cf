import AccountEvents
import AccountStore
import AppleID
import AppleSimulator
import EventLoop
import SQLite

/// An application with customers, as small as one can be: people sign in with Apple, and buy two things.
@Loop
final class DemoApplication {
  /// Where its customers are.
  let path: String
  private let database: Database
  private let customer: Statement
  private let purchase: Statement
  private let count: Statement

  /// Makes the database.
  init(in path: String) throws {
    self.path = path
    let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(5))
    try database.execute(
      """
      CREATE TABLE customer (
        id INTEGER PRIMARY KEY, apple_team TEXT NOT NULL, apple_sub TEXT NOT NULL UNIQUE, email TEXT NOT NULL
      ) STRICT;
      CREATE TABLE purchase (customer INTEGER NOT NULL REFERENCES customer, item TEXT NOT NULL) STRICT
      """)
    self.database = database
    customer = try database.prepare(
      "INSERT INTO customer (apple_team, apple_sub, email) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id")
    purchase = try database.prepare("INSERT INTO purchase (customer, item) VALUES (?, ?)")
    count = try database.prepare("SELECT count(*) FROM customer WHERE apple_sub = ?")
  }

  /// Makes the person a customer. These few rows are written in a millisecond, for which the loop waits.
  func welcome(_ person: Person, of team: TeamID) throws {
    let (customer, purchase) = (customer, purchase)
    try database.transaction { () throws(SQLiteError) in
      let id: Int64? = try customer.first(team.text, person.subject, person.address) { row throws(SQLiteError) in
        try row.value(0)
      }
      guard let id else { return }
      for item in ["a book", "a lamp"] { try purchase.run(id, item) }
    }
  }

  /// Whether the person is a customer.
  func knows(_ subject: AppleSubject) throws -> Bool {
    let number: Int64? = try count.first(subject.text) { row throws(SQLiteError) in try row.value(0) }
    return number != 0
  }

  /// What the data eraser is told about the database.
  static let erasure = """
          count: SELECT count(*) FROM customer WHERE apple_sub = $1 AND apple_team = $2
          erase:
            - DELETE FROM purchase WHERE customer IN (SELECT id FROM customer WHERE apple_sub = $1)
            - DELETE FROM customer WHERE apple_sub = $1 AND apple_team = $2
          find: SELECT count(*) FROM customer WHERE apple_sub = $1
    """
}
