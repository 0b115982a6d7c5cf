/// Up to 256 entries as tlog-tiles has them in a file: each behind its length in two bytes, the higher one first.
package struct EntryBundle: Sendable {
  /// The most bytes that an entry can have.
  package static let maximumEntrySize = Int(UInt16.max)
  /// The most bytes that a bundle can have.
  package static let maximumByteCount = TilePath.fullWidth * (2 + maximumEntrySize)

  /// All bytes of the file; but see `takeHash`.
  package private(set) var bytes: [UInt8]
  /// Where each whole entry lies in `bytes`; never more than 256.
  package let entries: [Range<Int>]
  /// Whether the file consists of those entries and nothing else.
  package let isWellFormed: Bool

  /// Parses bytes as far as they form entries.
  package init(_ bytes: [UInt8]) {
    var (entries, place) = ([Range<Int>](), 0)
    entries.reserveCapacity(TilePath.fullWidth)
    while entries.count < TilePath.fullWidth, bytes.count - place >= 2 {
      let size = Int(bytes[place]) << 8 | Int(bytes[place + 1])
      guard bytes.count - place - 2 >= size else { break }
      entries.append(place + 2..<place + 2 + size)
      place += 2 + size
    }
    (self.bytes, self.entries, isWellFormed) = (bytes, entries, place == bytes.count)
  }

  /// The hash of the entry at that place. The byte before the entry, the second one of its length, becomes what stands before
  /// it where it is hashed: OpenSSL hashes a message in one piece faster than one in several.
  mutating func takeHash(of place: Int) -> MerkleHash {
    let entry = entries[place]
    bytes[entry.lowerBound - 1] = MerkleHash.leafPrefix
    return unsafe bytes.withUnsafeBytes {
      unsafe .hash(UnsafeRawBufferPointer(rebasing: $0[entry.lowerBound - 1..<entry.upperBound]))
    }
  }

  /// The hash of each entry.
  var hashes: [MerkleHash] { entries.map { unsafe .leaf(bytes.span.bytes.extracting($0)) } }

  /// Writes an entry of at most `maximumEntrySize` bytes behind those of a bundle.
  static func append(_ entry: [UInt8], to bytes: inout [UInt8]) {
    precondition(entry.count <= maximumEntrySize)
    bytes.append(UInt8(entry.count >> 8))
    bytes.append(UInt8(entry.count & 0xff))
    bytes.append(contentsOf: entry)
  }
}
