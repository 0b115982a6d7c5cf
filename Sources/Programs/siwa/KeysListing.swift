import AccountEvents
import AppleID
import Cryptography
import JSON

/// What `siwa keys` prints.
struct KeysListing {
  /// A set, and when Apple gave it.
  typealias Held = (set: AppleKeySet, fetchedAt: Timestamp)

  /// What became of a key since it was fetched.
  private enum State: String { case same, new, gone }

  private struct Row {
    let key: AppleSigningKey
    let bitCount: Int
    var state: State?
  }

  private let source: String
  private let file: String
  private let fetchedAt: Timestamp?
  private let now: Timestamp
  private var rows: [Row]

  /// What the file at `file` holds; nil where there is none.
  init(source: String, file: String, held: Held?, now: Timestamp) {
    (self.source, self.file, self.now) = (source, file, now)
    fetchedAt = held?.fetchedAt
    rows = held.map { Self.rows(of: $0.set) } ?? []
  }

  /// Sets what Apple has now beside it.
  mutating func compare(with current: AppleKeySet) {
    for index in rows.indices { rows[index].state = current[rows[index].key.id] == nil ? .gone : .same }
    let held = Set(rows.map(\.key.id))
    for var row in Self.rows(of: current) where !held.contains(row.key.id) {
      row.state = .new
      rows.append(row)
    }
  }

  private static func rows(of set: AppleKeySet) -> [Row] {
    set.signingKeys.map { Row(key: $0, bitCount: set[$0.id]?.bitCount ?? 0) }
  }

  /// For people.
  var text: String {
    var lines = [
      fetchedAt.map { "Fetched \($0) (\(Self.age(now - $0)) ago) from \(source)" } ?? "None held: no \(file)"
    ]
    let width = rows.map(\.key.id.text.utf8.count).max() ?? 0
    for row in rows {
      let state = row.state.map { $0.rawValue.padded(to: 4) + "  " } ?? ""
      let since = row.state == .new ? "not held yet" : "held since \(row.key.firstSeen)"
      lines.append("  \(state)\(row.key.id.text.padded(to: width))  \(row.bitCount) bits  \(since)")
    }
    return lines.joined(separator: "\n")
  }

  /// For programs.
  var json: JSONValue {
    [
      "source": .string(source), "file": .string(file),
      "fetched_at": fetchedAt.map { .string($0.description) } ?? .null,
      "keys": .array(
        rows.map { row in
          .object(
            [
              .init("kid", .string(row.key.id.text)), .init("bits", .integer(Int64(row.bitCount))),
              .init("held_since", row.state == .new ? .null : .string(row.key.firstSeen.description)),
            ] + (row.state.map { [.init("state", .string($0.rawValue))] } ?? []))
        }),
    ]
  }

  /// In its largest unit, rounded down.
  private static func age(_ duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    for (unit, length) in [("days", 86_400), ("hours", 3600), ("minutes", 60)] as [(String, Int64)]
    where seconds >= 2 * length { return "\(seconds / length) \(unit)" }
    return "\(seconds) seconds"
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - utf8.count)) }
}
