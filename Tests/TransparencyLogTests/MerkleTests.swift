import TestSupport
import Testing

@testable import TransparencyLog

@Suite struct MerkleTests {
  /// The example of Certificate Transparency's reference implementation, after RFC 6962.
  private static let example: [[UInt8]] = [
    [], [0x00], [0x10], [0x20, 0x21], [0x30, 0x31], [0x40, 0x41, 0x42, 0x43],
    [0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57], Array(0x60...0x6f),
  ]
  private static let roots = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
  ]

  @Test(arguments: Array(roots.enumerated()))
  func rootsAreThoseOfTheReferenceImplementation(size: Int, root: String) {
    var edge = TreeEdge()
    for entry in Self.example.prefix(size) { edge.append(.leaf(entry)) }
    #expect(hexadecimal(edge.root) == root)
    #expect(hexadecimal(NaiveTree(entries: Self.example).root(0..<size)) == root)
  }

  @Test func aProofIsThatOfTheReferenceImplementation() async throws {
    let log = MemoryLog(Self.example)
    let head = NaiveTree(entries: Self.example).head(8)
    let proof = try await LogView(log, at: head).inclusionProof(of: 0).proof
    #expect(
      proof.hashes.map(hexadecimal) == [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
      ])
  }

  /// Over the edges of tiles, on two levels.
  @Test func theRightEdgeComesToTheRootsOfANaiveTree() {
    let tree = NaiveTree(entries: sampleEntries(700))
    var edge = TreeEdge()
    for size in 0...700 {
      #expect(edge.head == tree.head(size), "\(size) entries")
      #expect(edge.levels[0].count == size % 256)
      if size < 700 { edge.append(.leaf(tree.entries[size])) }
      while let tile = edge.takeFullTile() {
        #expect(tile.path == TilePath(.hashes(level: 0), UInt64(size / 256)))
        #expect(tile.hashes == tree.entries[size - 255...size].map { MerkleHash.leaf($0) })
      }
    }
  }

  @Test func theThirdLevelBeginsWhereTheSecondIsFull() {
    let entries = (0..<65_536 + 300).map { Array("\($0)".utf8) }
    var (edge, tiles) = (TreeEdge(), [TilePath]())
    for entry in entries {
      edge.append(.leaf(entry))
      while let tile = edge.takeFullTile() { tiles.append(tile.path) }
    }
    #expect(edge.root == NaiveTree(entries: entries).root(0..<entries.count))
    #expect(edge.levels.map(\.count) == [44, 1, 1])
    #expect(tiles.count == 258)
    #expect(tiles[255...256].map(\.text) == ["tile/0/255", "tile/1/000"])
  }

  @Test func everyEntryOfEverySmallTreeIsProvenAsDefined() async throws {
    let entries = sampleEntries(40)
    let tree = NaiveTree(entries: entries)
    for size in 1...40 {
      let view = LogView(MemoryLog(Array(entries.prefix(size))), at: tree.head(size))
      for index in 0..<size {
        let (leaf, proof) = try await view.inclusionProof(of: UInt64(index))
        #expect(leaf == .leaf(entries[index]))
        #expect(proof.hashes == tree.path(index, 0..<size), "entry \(index) of \(size)")
        #expect(proof.proves(leaf, at: UInt64(index), in: tree.head(size)))
        expectNothingElse(of: proof, leaf, UInt64(index), view.head)
      }
    }
  }

  @Test func everyPairOfSmallTreesIsProvenAsDefined() async throws {
    let entries = sampleEntries(40)
    let tree = NaiveTree(entries: entries)
    for size in 0...40 {
      let view = LogView(MemoryLog(Array(entries.prefix(size))), at: tree.head(size))
      for old in 0...size {
        let (older, proof) = try await view.consistencyProof(from: UInt64(old))
        #expect(older == tree.head(old))
        #expect(proof.hashes == (old == 0 ? [] : tree.proof(old, 0..<size)), "from \(old) to \(size)")
        #expect(proof.proves(view.head, continues: older))
        expectNothingElse(of: proof, older, view.head)
      }
    }
  }

  /// Proofs that take hashes from several tiles and levels.
  @Test(arguments: [255, 256, 257, 511, 512, 513, 700])
  func largerTreesAreProvenToo(size: Int) async throws {
    let entries = sampleEntries(size)
    let tree = NaiveTree(entries: entries)
    let view = LogView(MemoryLog(entries), at: tree.head(size))
    for index in [0, 1, 100, 254, 255, 256, 257, 511, 512, size - 1] where index < size {
      let proof = try await view.inclusionProof(of: UInt64(index)).proof
      #expect(proof.hashes == tree.path(index, 0..<size), "entry \(index)")
      let consistency = try await view.consistencyProof(from: UInt64(index)).proof
      #expect(consistency.hashes == (index == 0 ? [] : tree.proof(index, 0..<size)), "from \(index)")
    }
  }

  /// Whatever is changed, it proves nothing.
  private func expectNothingElse(of proof: InclusionProof, _ leaf: MerkleHash, _ index: UInt64, _ head: TreeHead) {
    for other in neighbours(of: proof.hashes) {
      #expect(!InclusionProof(other).proves(leaf, at: index, in: head), "entry \(index) of \(head.size)")
    }
    #expect(!proof.proves(.empty, at: index, in: head))
    #expect(!proof.proves(leaf, at: index, in: TreeHead(size: head.size, root: .empty)))
    for wrong in [index &+ 1, index &- 1, head.size, .max] where wrong != index {
      #expect(!proof.proves(leaf, at: wrong, in: head), "entry \(index) of \(head.size) at \(wrong)")
    }
  }

  private func expectNothingElse(of proof: ConsistencyProof, _ older: TreeHead, _ head: TreeHead) {
    let comment: Comment = "from \(older.size) to \(head.size)"
    for other in neighbours(of: proof.hashes) {
      #expect(!ConsistencyProof(other).proves(head, continues: older), comment)
    }
    let forged = MerkleHash.leaf([1])
    #expect(!proof.proves(head, continues: TreeHead(size: older.size, root: forged)), comment)
    if older.size > 0 { #expect(!proof.proves(TreeHead(size: head.size, root: forged), continues: older), comment) }
    if older.size < head.size { #expect(!proof.proves(older, continues: head), comment) }
  }

  /// The hashes with one too many, one too few, one changed, two exchanged.
  private func neighbours(of hashes: [MerkleHash]) -> [[MerkleHash]] {
    var lists = [hashes + [.empty], [.empty] + hashes]
    for place in hashes.indices {
      var (fewer, other, exchanged) = (hashes, hashes, hashes)
      fewer.remove(at: place)
      other[place] = .node(other[place], .empty)
      lists += [fewer, other]
      if place > 0 {
        exchanged.swapAt(place, place - 1)
        lists.append(exchanged)
      }
    }
    return lists
  }

  /// Sizes that nobody has: they are refused, and nothing is done as often as they say.
  @Test(
    arguments: [
      (.max - 1, .max), (.max, .max), (0, .max), (1 << 63, .max), (1 << 63, 1 << 63 + 1), (.max, 0), (5, 0),
    ] as [(UInt64, UInt64)])
  func hostileSizesProveNothing(index: UInt64, size: UInt64) {
    let (head, other) = (TreeHead(size: size, root: .empty), TreeHead(size: index, root: .leaf([])))
    for count in [0, 1, 63, 64, 65, 1000] {
      let hashes = [MerkleHash](repeating: .empty, count: count)
      #expect(!InclusionProof(hashes).proves(.empty, at: index, in: head))
      #expect(!ConsistencyProof(hashes).proves(head, continues: other))
    }
  }

  @Test func shapesOfTheLargestTreesAreFinite() {
    #expect(TreeShape.inclusion(of: .max - 1, in: .max).count == 63)
    #expect(TreeShape.inclusion(of: 0, in: .max).count == 64)
    #expect(TreeShape.consistency(from: .max - 1, to: .max).count < 70)
    #expect(TreeShape.subtrees(of: 0..<UInt64.max).map(\.height) == Array((0..<64).reversed()))
    #expect(TreeShape.subtrees(of: 1 << 63..<UInt64.max).count == 63)
    for index in [0, 1, .max / 2, .max - 1] as [UInt64] {
      let plan = ProofPlan(size: .max, ranges: TreeShape.inclusion(of: index, in: .max))
      #expect(plan.tiles.count <= 16 && plan.tiles.allSatisfy { 0..<8 ~= $0.kind.level })
    }
  }

  @Test func hashesHaveOneText() {
    let hash = MerkleHash.leaf([1, 2, 3])
    #expect(MerkleHash(base64: hash.description.utf8) == hash)
    #expect(MerkleHash(hash.bytes) == hash && hash.bytes.count == 32)
    for text in ["", "AAAA", "\(hash)\n", " \(hash)", hash.description.replacing("=", with: "A")] {
      #expect(MerkleHash(base64: text.utf8) == nil, "\(text)")
    }
    #expect(MerkleHash([1, 2, 3]) == nil)
  }
}
