import AppleSimulator
import EventLoop
import SQLite
import TestSupport

/// An application with customers, each with two purchases, from which people are erased.
@Loop
final class Shop {
  private let database: Database
  private let customer: Statement
  private let purchase: Statement

  /// Makes the database.
  init(_ path: String) throws {
    database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try database.execute(
      """
      CREATE TABLE customer (id INTEGER PRIMARY KEY, apple_sub TEXT NOT NULL UNIQUE) STRICT;
      CREATE TABLE purchase (customer INTEGER NOT NULL REFERENCES customer, item TEXT NOT NULL) STRICT
      """)
    customer = try database.prepare("INSERT INTO customer (apple_sub) VALUES (?) RETURNING id")
    purchase = try database.prepare("INSERT INTO purchase (customer, item) VALUES (?, 'a book'), (?, 'a lamp')")
  }

  /// Makes people customers.
  func welcome(_ people: [Person]) throws {
    try database.transaction { () throws(SQLiteError) in
      for person in people {
        let id: Int64? = try customer.first(person.subject) { row throws(SQLiteError) in try row.value(0) }
        try purchase.run(id, id)
      }
    }
  }

  /// The subjects of all customers.
  func customers() throws -> Set<String> {
    var subjects: Set<String> = []
    try database.prepare("SELECT apple_sub FROM customer").forEach { row throws(SQLiteError) in
      subjects.insert(try row.value(0))
    }
    return subjects
  }

  /// How many customers there are.
  func customerCount() throws -> Int { try count("SELECT count(*) FROM customer") }

  /// How many purchases there are.
  func purchases() throws -> Int { try count("SELECT count(*) FROM purchase") }

  private func count(_ sql: StaticString) throws -> Int {
    let count: Int64? = try database.prepare(sql).first { row throws(SQLiteError) in try row.value(0) }
    return Int(count ?? -1)
  }

  /// What the data eraser is told about the database, in YAML.
  nonisolated static let target = """
          sqlite: shop.sqlite
          count: SELECT count(*) FROM customer WHERE apple_sub = $1
          erase:
            - DELETE FROM purchase WHERE customer IN (SELECT id FROM customer WHERE apple_sub = $1)
            - DELETE FROM customer WHERE apple_sub = $1
          find: SELECT count(*) FROM customer WHERE apple_sub = $1
    """
}
