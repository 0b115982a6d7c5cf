/// The place of a tile or of an entry bundle in a log, as tlog-tiles names it: `tile/0/x001/234`, `tile/entries/000.p/7`.
package struct TilePath: Sendable, Hashable, CustomStringConvertible {
  /// The kind of items in a file.
  package enum Kind: Sendable, Hashable {
    /// Hashes over 256 to the power of `level` entries each; those of level 0 are of single entries.
    case hashes(level: Int)
    /// The entries themselves.
    case entries

    /// The level of the tree that the items stand on.
    var level: Int {
      switch self {
      case .hashes(let level): level
      case .entries: 0
      }
    }
  }

  /// The number of items of a file that is full.
  package static let fullWidth = 256
  /// The levels that a tree can have whose size is a `UInt64`.
  static let levels = 0..<8
  /// All kinds: entries, and the hashes of each level.
  static let kinds: [Kind] = [.entries] + levels.map { .hashes(level: $0) }

  /// The kind of items.
  package let kind: Kind
  /// The number of the file among those of its kind.
  package let index: UInt64
  /// The number of items: 256, or fewer in a partial file at the right edge.
  package let width: Int

  /// Whether the file is full rather than partial.
  package var isFull: Bool { width == Self.fullWidth }
  /// The path of the full file that a partial one precedes.
  package var full: TilePath { TilePath(kind, index) }

  /// The file of that kind and number.
  init(_ kind: Kind, _ index: UInt64, width: Int = fullWidth) {
    precondition(0...63 ~= kind.level && 1...Self.fullWidth ~= width)
    (self.kind, self.index, self.width) = (kind, index, width)
  }

  /// The file that holds item number `item` in a tree of `size` entries. The tree must have that item.
  init(_ kind: Kind, holding item: UInt64, in size: UInt64) {
    let index = item / UInt64(Self.fullWidth)
    let count = Self.count(kind, in: size) - index * UInt64(Self.fullWidth)
    self.init(kind, index, width: Int(min(count, UInt64(Self.fullWidth))))
  }

  /// The number of items of that kind in a tree of `size` entries, over all files.
  static func count(_ kind: Kind, in size: UInt64) -> UInt64 { size >> UInt64(8 * kind.level) }

  /// The partial file at the right edge of a tree of `size` entries; nil where there is none of that kind.
  static func edge(_ kind: Kind, of size: UInt64) -> TilePath? {
    let count = count(kind, in: size)
    let width = Int(count % UInt64(fullWidth))
    return width == 0 ? nil : TilePath(kind, count / UInt64(fullWidth), width: width)
  }

  /// Reads a path as `text` writes it; nil for any other.
  package init?(_ text: String) {
    var parts = text.split(separator: "/", omittingEmptySubsequences: false)[...]
    guard text.utf8.count <= 64, parts.popFirst() == "tile", let name = parts.popFirst() else { return nil }
    var width = Self.fullWidth
    if parts.count >= 2, parts[parts.endIndex - 2].hasSuffix(".p") {
      guard let number = Int(parts.removeLast()), 1..<Self.fullWidth ~= number else { return nil }
      width = number
      parts[parts.endIndex - 1] = parts[parts.endIndex - 1].dropLast(2)
    }
    var index: UInt64 = 0
    for (place, part) in parts.enumerated() {
      let isLast = place == parts.count - 1
      guard let number = UInt64(isLast ? part : part.dropFirst()), number < 1000 else { return nil }
      let (shifted, overflow) = index.multipliedReportingOverflow(by: 1000)
      let (sum, carry) = shifted.addingReportingOverflow(number)
      guard !overflow, !carry else { return nil }
      index = sum
    }
    if name == "entries" {
      self.init(.entries, index, width: width)
    } else if let level = Int(name), 0...63 ~= level {
      self.init(.hashes(level: level), index, width: width)
    } else {
      return nil
    }
    // The parsing above is lenient about signs, zeros and prefixes; comparing with the canonical form is not.
    guard self.text.utf8.elementsEqual(text.utf8) else { return nil }
  }

  /// The path, relative to the log's prefix.
  package var text: String {
    "\(fullText)\(isFull ? "" : ".p/\(width)")"
  }

  /// The directory of all partial files that stand in for the full one.
  var partials: String { "\(fullText).p" }

  private var fullText: String {
    var (groups, rest) = (Self.digits(index % 1000), index / 1000)
    while rest > 0 {
      groups = "x\(Self.digits(rest % 1000))/\(groups)"
      rest /= 1000
    }
    return switch kind {
    case .entries: "tile/entries/\(groups)"
    case .hashes(let level): "tile/\(level)/\(groups)"
    }
  }

  private static func digits(_ number: UInt64) -> String { String(String(1000 + number).dropFirst()) }

  /// The path.
  package var description: String { text }
}
