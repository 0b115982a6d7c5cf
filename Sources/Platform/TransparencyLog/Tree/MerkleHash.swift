import Cryptography

/// A hash of a Merkle tree over SHA-256 (RFC 6962 §2.1): of an entry, or of two subtrees.
package struct MerkleHash: Sendable, Hashable, CustomStringConvertible {
  /// The number of bytes of a hash.
  package static let byteCount = 32
  /// The root of the tree without entries.
  package static let empty = MerkleHash(digest: SHA256.digest(of: []))

  /// What stands before an entry, and before two subtrees, where they are hashed.
  static let (leafPrefix, nodePrefix) = (UInt8(0), UInt8(1))

  // The bytes as they lie in memory: no allocation for each, and four comparisons.
  private var (first, second, third, fourth) = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))

  private init() {}

  private init(digest: SHA256Digest) {
    unsafe withUnsafeMutableBytes(of: &self) { unsafe $0.copyBytes(from: digest.bytes) }
  }

  /// The hash that these bytes are; nil unless there are 32.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    unsafe withUnsafeMutableBytes(of: &self) { unsafe $0.copyBytes(from: bytes) }
  }

  /// The hash that this text stands for in Base64; nil for anything that `description` does not write.
  package init?(base64 text: some Collection<UInt8>) {
    guard text.count == 44, let bytes = Base64.decode(String(decoding: text, as: UTF8.self)) else { return nil }
    self.init(bytes)
  }

  /// The hash of an entry.
  package static func leaf(_ entry: RawSpan) -> MerkleHash {
    unsafe entry.withUnsafeBytes { unsafe hash(leafPrefix, $0) }
  }

  /// The hash of an entry.
  package static func leaf(_ entry: [UInt8]) -> MerkleHash { unsafe leaf(entry.span.bytes) }

  /// The hash over two subtrees.
  package static func node(_ left: MerkleHash, _ right: MerkleHash) -> MerkleHash {
    unsafe withUnsafeBytes(of: (left, right)) { unsafe hash(nodePrefix, $0) }
  }

  /// The hash of a message that begins with its prefix.
  static func hash(_ message: UnsafeRawBufferPointer) -> MerkleHash {
    var hash = MerkleHash()
    unsafe withUnsafeMutableBytes(of: &hash) { unsafe SHA256.digest(of: message, into: $0) }
    return hash
  }

  private static func hash(_ prefix: UInt8, _ message: UnsafeRawBufferPointer) -> MerkleHash {
    var hash = MerkleHash()
    unsafe withUnsafeMutableBytes(of: &hash) { unsafe SHA256.digest(of: prefix, message, into: $0) }
    return hash
  }

  /// The 32 bytes.
  package var bytes: [UInt8] { unsafe withUnsafeBytes(of: self) { unsafe Array($0) } }

  /// The bytes in Base64, as checkpoints and proofs have them.
  package var description: String { Base64.encode(bytes) }

  /// The root over subtrees of one height that stand side by side, of which the last one may be lower.
  ///
  /// Hashing neighbours row by row, a last one without a neighbour going up as it is, makes the same tree as the
  /// recursive definition of RFC 6962.
  static func root(over subtrees: [MerkleHash]) -> MerkleHash {
    precondition(!subtrees.isEmpty, "nothing has no root but the empty tree's")
    var count = subtrees.count
    // Two neighbours lie behind their prefix: OpenSSL hashes a message in one piece faster than one in several.
    let size = 1 + 2 * byteCount
    let pairs = (count + 1) / 2
    return unsafe withUnsafeTemporaryAllocation(byteCount: pairs * size, alignment: 1) { row in
      func place(_ index: Int) -> UnsafeMutableRawBufferPointer {
        let start = index / 2 * size + 1 + index % 2 * byteCount
        return unsafe UnsafeMutableRawBufferPointer(rebasing: row[start..<start + byteCount])
      }
      for pair in 0..<pairs { unsafe row[pair * size] = nodePrefix }
      for index in 0..<count {
        unsafe withUnsafeBytes(of: subtrees[index]) { unsafe place(index).copyMemory(from: $0) }
      }
      while count > 1 {
        for pair in 0..<count / 2 {
          let message = unsafe UnsafeRawBufferPointer(rebasing: row[pair * size..<(pair + 1) * size])
          unsafe SHA256.digest(of: message, into: place(pair))
        }
        if !count.isMultiple(of: 2) {
          unsafe place(count / 2).copyMemory(from: UnsafeRawBufferPointer(place(count - 1)))
        }
        count = (count + 1) / 2
      }
      return unsafe row.loadUnaligned(fromByteOffset: 1, as: MerkleHash.self)
    }
  }
}

extension [MerkleHash] {
  /// The hashes that these bytes are, one behind the other; nil where there is a rest.
  init?(tile bytes: [UInt8]) {
    let (size, rest) = bytes.count.quotientAndRemainder(dividingBy: MerkleHash.byteCount)
    guard rest == 0 else { return nil }
    self = unsafe [MerkleHash](unsafeUninitializedCapacity: size) { hashes, count in
      unsafe UnsafeMutableRawBufferPointer(hashes).copyBytes(from: bytes)
      count = size
    }
  }

  /// The bytes of the tile that consists of these hashes.
  var tile: [UInt8] { unsafe withUnsafeBytes { unsafe [UInt8]($0) } }
}
