/// The data of a log line: values under dotted camelCase keys, which are constants of the code.
///
/// Written as a literal: `["event.id": "\(id)", "kafka.partition": .integer(partition)]`.
public struct LogMetadata: Sendable, ExpressibleByDictionaryLiteral {
  struct Entry: Sendable {
    let key: StaticString
    let value: LogValue
  }

  private(set) var entries: [Entry] = []

  /// The entries in the order in which they are written; a repeated key counts with its last value.
  public init(dictionaryLiteral elements: (StaticString, LogValue)...) {
    entries.reserveCapacity(elements.count)
    for (key, value) in elements { set(key, value) }
  }

  /// Sets the value of a key, in its old place if there was one.
  public mutating func set(_ key: StaticString, _ value: LogValue) {
    assert(Self.isWellFormed(key), "\(key) is no dotted camelCase key")
    let entry = Entry(key: key, value: value)
    if let index = entries.firstIndex(where: { Self.same($0.key, key) }) {
      entries[index] = entry
    } else {
      entries.append(entry)
    }
  }

  mutating func set(_ other: LogMetadata) {
    if entries.isEmpty { return entries = other.entries }
    for entry in other.entries { set(entry.key, entry.value) }
  }

  private static func same(_ left: StaticString, _ right: StaticString) -> Bool {
    left.withUTF8Buffer { left in
      right.withUTF8Buffer { right in unsafe left.elementsEqual(right) }
    }
  }

  /// `event.id`, `kafka.partition`, `team`; not the names that every line has.
  private static func isWellFormed(_ key: StaticString) -> Bool {
    let name = key.description
    if ["time", "level", "message"].contains(name) { return false }
    return name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { part in
      guard let first = part.first, first.isLowerCase else { return false }
      return part.allSatisfy { $0.isLowerCase || $0.isUpperCase || $0.isDigit }
    }
  }
}

extension UInt8 {
  var isLowerCase: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
  var isUpperCase: Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }
  var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}
