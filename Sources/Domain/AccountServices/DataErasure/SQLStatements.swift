/// The statements of an SQL target, as the operator wrote them: `$1` is the subject, `$2` the team, and `$3` when the event
/// happened, in milliseconds since the Unix epoch. Each has to use `$1`; the others are theirs to use.
package struct SQLStatements: Sendable, Hashable {
  /// Counts what there is of the account: one row, one integer.
  package let count: String
  /// Erases it, one after the other, in one transaction.
  package let erase: [String]
  /// Looks for it afterwards in its own way: one row, one integer, 0 where nothing is found.
  package let find: String

  /// The names of the parameters, in the order of their values.
  package static let parameters = ["$1", "$2", "$3"]

  /// Statements for one database.
  package init(count: String, erase: [String], find: String) {
    (self.count, self.erase, self.find) = (count, erase, find)
  }
}
