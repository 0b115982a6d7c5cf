/// Lines whose key leaves open whom it names: the plan has the person under another key, or somebody else under this one.
/// What the plan has stays: which line is right, only whoever wrote them can say.
package struct KeyFaults: Sendable, Hashable {
  /// A line, by what an operator finds it with: nothing of the person.
  package struct Line: Sendable, Hashable, CustomStringConvertible {
    /// Its number, counted from 1.
    package let number: Int64
    /// The key that stands there.
    package let key: String
    /// The key under which the plan has the person; nil where it has somebody else under the line's.
    package let known: String?
    /// For an operator.
    package var description: String {
      let fault =
        known.map { "the plan has the same person under the key \($0)" } ?? "the plan has another person under this key"
      return "line \(number): key \(key): \(fault)"
    }
  }

  /// So many lines are told at most.
  static let most = 20

  /// How many lines name somebody by a second key.
  package private(set) var second: Int64 = 0
  /// How many lines name somebody by the key of somebody else, and were not taken.
  package private(set) var shared: Int64 = 0
  /// The first of both, 20 at most.
  package private(set) var first: [Line] = []

  /// None yet.
  package init() {}

  /// How many lines there were.
  package var count: Int64 { second + shared }

  /// Notes a line of somebody whom the plan has, unless it has the key that is known, byte for byte.
  mutating func note(_ number: Int64, _ key: String, known: String) {
    guard !key.utf8.elementsEqual(known.utf8) else { return }
    second += 1
    tell(Line(number: number, key: key, known: known))
  }

  /// Notes a line whose key is somebody else's.
  mutating func note(_ number: Int64, shared key: String) {
    shared += 1
    tell(Line(number: number, key: key, known: nil))
  }

  private mutating func tell(_ line: Line) { if first.count < Self.most { first.append(line) } }
}
