import TestSupport
import Testing

@testable import TransparencyLog

@Suite struct TrustTests {
  private static let origin = "example.com/log"
  private static let head = TreeHead(size: 3, root: .leaf([1]))

  private let signer: NoteSigner
  private let witnesses: [Cosigner]

  init() throws {
    signer = try NoteSigner.generate(name: Self.origin).signer
    witnesses = try (0..<3 as Range<UInt8>).map {
      try Cosigner(name: "witness.example/\($0)", seed: [UInt8](repeating: $0, count: 32))
    }
  }

  private func note(_ head: TreeHead = head, by signer: NoteSigner? = nil) async throws -> SignedNote {
    try await SignedNote.sign(Checkpoint(origin: Self.origin, head: head).text, with: signer ?? self.signer)
  }

  private func cosigned(_ note: SignedNote, by witnesses: [Cosigner]) throws -> SignedNote {
    try SignedNote(text: note.text, note.signatures + witnesses.map { try $0.cosign(note.text, at: 1_800_000_000) })
  }

  private func trust(_ threshold: Int) throws -> LogTrust {
    try LogTrust(
      origin: Self.origin, key: signer.key, policy: WitnessPolicy(threshold, of: witnesses.map(\.key)))
  }

  @Test func aSignedCheckpointIsBelieved() async throws {
    let verified = try trust(0).verify(await note())
    #expect(verified.checkpoint.head == Self.head && verified.key == signer.key && verified.cosignatures == [])
  }

  @Test func anotherLogOrKeyIsNot() async throws {
    let note = try await note()
    let stranger = try NoteSigner.generate(name: Self.origin).signer
    let other = try LogTrust(origin: "example.com/other", key: signer.key, policy: .none)
    expect(.wrongOrigin) { _ = try other.verify(note) }
    let otherKey = try LogTrust(origin: Self.origin, key: stranger.key, policy: .none)
    expect(.unsigned) { _ = try otherKey.verify(note) }
    let forged = try SignedNote(text: Checkpoint(origin: Self.origin, head: .empty).text, note.signatures)
    expect(.badSignature) { _ = try trust(0).verify(forged) }
    expect(.malformed) { _ = try LogTrust(origin: Self.origin, key: witnesses[0].key, policy: .none) }
  }

  @Test func asManyWitnessesAsAskedForHaveToHaveCosigned() async throws {
    let note = try await note()
    for count in 0...3 {
      let cosigned = try cosigned(note, by: Array(witnesses.prefix(count)))
      for threshold in 0...3 {
        if threshold <= count {
          let verified = try trust(threshold).verify(cosigned)
          #expect(verified.cosignatures.map(\.witness) == witnesses.prefix(count).map(\.key))
          #expect(verified.cosignatures.allSatisfy { $0.time == 1_800_000_000 })
        } else {
          expect(.notCosigned) { _ = try trust(threshold).verify(cosigned) }
        }
      }
    }
    // The same witness twice is one.
    expect(.notCosigned) { _ = try trust(2).verify(cosigned(note, by: [witnesses[0], witnesses[0]])) }
  }

  @Test func aCosignatureIsOfItsTextAndItsTime() async throws {
    let note = try await note()
    let good = try witnesses[0].cosign(note.text, at: 7)
    var later = good.bytes
    later[7] += 1
    let other = try witnesses[0].cosign(Array("other\n".utf8), at: 7)
    let plain = try await signer.sign(note.text)
    for bytes in [later, other.bytes, plain, Array(good.bytes.dropLast()), [UInt8](repeating: 0xff, count: 72), [0]] {
      let bad = try SignedNote(text: note.text, note.signatures + [NoteSignature(by: witnesses[0].key, bytes)])
      expect(.badSignature) { _ = try trust(0).verify(bad) }
      // Those who do not know the witness do not care.
      let indifferent = try LogTrust(origin: Self.origin, key: signer.key, policy: .none)
      #expect(throws: Never.self) { try indifferent.verify(bad) }
    }
  }

  @Test func policiesThatCannotHoldAreRefused() throws {
    let keys = witnesses.map(\.key)
    for (threshold, list) in [(4, keys), (-1, keys), (1, []), (1, [signer.key]), (1, [keys[0], keys[0]])] {
      expect(.malformed) { _ = try WitnessPolicy(threshold, of: list) }
    }
  }

  @Test func aVerifierFollowsTheKeysOfALog() async throws {
    let signers = [signer] + (try (0..<3).map { _ in try NoteSigner.generate(name: Self.origin).signer })
    let heads = [10, 20, 20].map { TreeHead(size: $0, root: .leaf([UInt8($0)])) }
    var history = KeyHistory()
    for (place, head) in heads.enumerated() {
      let checkpoint = Checkpoint(origin: Self.origin, head: head)
      history = try history.appending(
        await KeyRotation.sign(checkpoint, from: signers[place], to: signers[place + 1]))
    }
    let trust = try self.trust(0).following(history.bytes)
    #expect(trust.history == history && trust.newestKey == signers[3].key)
    #expect(try self.trust(0).newestKey == signer.key)
    let allowed: [(size: UInt64, keys: Set<Int>)] = [
      (0, [0]), (9, [0]), (10, [0, 1]), (11, [1]), (19, [1]), (20, [1, 2, 3]), (21, [3]), (.max, [3]),
    ]
    for (size, keys) in allowed {
      for (place, signer) in signers.enumerated() {
        let note = try await note(heads.first { $0.size == size } ?? TreeHead(size: size, root: .empty), by: signer)
        if keys.contains(place) {
          #expect(try trust.verify(note).key == signer.key)
        } else {
          expect(.unsigned) { _ = try trust.verify(note) }
        }
      }
    }
  }

  @Test func atARotationThereIsOneTree() async throws {
    let next = try NoteSigner.generate(name: Self.origin).signer
    let rotation = try await KeyRotation.sign(Checkpoint(origin: Self.origin, head: Self.head), from: signer, to: next)
    let trust = try self.trust(0).following(KeyHistory().appending(rotation).bytes)
    for key in [signer, next] {
      #expect(try trust.verify(await note(by: key)).checkpoint.head == Self.head)
      let other = try await note(TreeHead(size: 3, root: .leaf([2])), by: key)
      expect(.conflict) { _ = try trust.verify(other) }
    }
  }

  @Test func aReplacedKeyProvesNothingAlone() async throws {
    let (entries, next) = (sampleEntries(20), try NoteSigner.generate(name: Self.origin).signer)
    let tree = NaiveTree(entries: entries)
    let at = Checkpoint(origin: Self.origin, head: tree.head(15))
    let keys = try KeyHistory().appending(await KeyRotation.sign(at, from: signer, to: next)).bytes
    func proof(_ entries: [[UInt8]], by signer: NoteSigner, _ witnesses: [Cosigner] = []) async throws -> LogProof {
      let head = NaiveTree(entries: entries).head(entries.count)
      let inclusion = try await LogView(MemoryLog(entries), at: head).inclusionProof(of: 5).proof
      let note = try cosigned(await note(head, by: signer), by: witnesses)
      return LogProof(extra: nil, index: 5, inclusion: inclusion, note: note)
    }
    let trust = try self.trust(0).following(keys)
    let leaf = MerkleHash.leaf(entries[5])
    let receipt = try await proof(Array(entries.prefix(10)), by: signer)
    let consistency = try await LogView(MemoryLog(Array(entries.prefix(15))), at: at.head).consistencyProof(from: 10)
      .proof
    #expect(try self.trust(0).verify(receipt.note).key == signer.key)
    expect(.unproven) { _ = try receipt.verify(leaf, trusting: trust) }
    expect(.unproven) {
      _ = try receipt.verify(leaf, trusting: trust, ofReplacedKeys: .consistency(ConsistencyProof([])))
    }
    #expect(try receipt.verify(leaf, trusting: trust, ofReplacedKeys: .consistency(consistency)).key == signer.key)
    #expect(try receipt.verify(leaf, trusting: trust, ofReplacedKeys: .none).key == signer.key)
    // A thief has made another tree.
    let forgery = try await proof(entries.prefix(10).map { $0 + [1] }, by: signer)
    let forged = MerkleHash.leaf(entries[5] + [1])
    expect(.unproven) { _ = try forgery.verify(forged, trusting: trust) }
    expect(.unproven) { _ = try forgery.verify(forged, trusting: trust, ofReplacedKeys: .consistency(consistency)) }
    // Witnesses vouch for it; and at the rotation and behind it the checkpoint needs nobody.
    let witnessed = try await proof(Array(entries.prefix(10)), by: signer, [witnesses[0]])
    #expect(try witnessed.verify(leaf, trusting: self.trust(1).following(keys)).cosignatures.count == 1)
    expect(.unproven) { _ = try witnessed.verify(leaf, trusting: trust) }
    #expect(try await proof(Array(entries.prefix(15)), by: signer).verify(leaf, trusting: trust).key == signer.key)
    #expect(try await proof(entries, by: next).verify(leaf, trusting: trust).key == next.key)
  }

  @Test func whatIsKnownOfTheKeysIsNotForgotten() async throws {
    let signers = [signer] + (try (0..<3).map { _ in try NoteSigner.generate(name: Self.origin).signer })
    let checkpoints = [10, 20].map {
      Checkpoint(origin: Self.origin, head: TreeHead(size: $0, root: .leaf([UInt8($0)])))
    }
    let first = try await KeyRotation.sign(checkpoints[0], from: signers[0], to: signers[1])
    let second = try await KeyRotation.sign(checkpoints[1], from: signers[1], to: signers[2])
    let older = try KeyHistory().appending(first)
    let known = try trust(0).following(older.bytes).following(older.appending(second).bytes)
    #expect(try known.following(known.history.bytes).newestKey == signers[2].key)
    // The second key is stolen: it would be the newest again, or has another successor, at that tree or a later one.
    expect(.conflict) { _ = try known.following(older.bytes) }
    for checkpoint in [checkpoints[1], Checkpoint(origin: Self.origin, head: TreeHead(size: 30, root: .empty))] {
      let theft = try await KeyRotation.sign(checkpoint, from: signers[1], to: signers[3])
      let stolen = try older.appending(theft)
      expect(.conflict) { _ = try known.following(stolen.bytes) }
      #expect(try trust(0).following(stolen.bytes).newestKey == signers[3].key, "who knows of no rotation is deceived")
    }
    // So would the first key have.
    let moved = try await KeyRotation.sign(checkpoints[1], from: signers[0], to: signers[1])
    expect(.conflict) { _ = try known.following(try KeyHistory().appending(moved).appending(second).bytes) }
  }

  @Test func aHistoryThatIsNotOneIsRefused() async throws {
    let (next, last) = (
      try NoteSigner.generate(name: Self.origin).signer, try NoteSigner.generate(name: Self.origin).signer
    )
    let checkpoint = Checkpoint(origin: Self.origin, head: Self.head)
    let first = try await KeyRotation.sign(checkpoint, from: signer, to: next)
    let second = try await KeyRotation.sign(checkpoint, from: next, to: last)
    let both = try KeyHistory().appending(first).appending(second)
    #expect(try KeyHistory(both.bytes, of: Self.origin, from: signer.key) == both)
    func expectRefusal(_ code: LogError.Code, _ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
      expect(code, sourceLocation: sourceLocation) { _ = try trust(0).following(bytes) }
    }
    expectRefusal(.malformed, [])
    expectRefusal(.malformed, [0x0a])
    expectRefusal(.malformed, both.bytes + [0x0a])
    expectRefusal(.malformed, Array(both.bytes.dropLast()))
    expectRefusal(.malformed, [0x0a] + both.bytes)
    expectRefusal(.unsigned, second.note.bytes)
    expectRefusal(.unsigned, second.note.bytes + [0x0a] + first.note.bytes)
    expectRefusal(.tooLarge, [UInt8](repeating: 0x0a, count: KeyHistory.maximumByteCount + 1))
    // Either signature is missing.
    for signature in first.note.signatures {
      expectRefusal(.unsigned, try SignedNote(text: first.note.text, [signature]).bytes)
    }
    // Another log's, and one for a tree before the one of the rotation before.
    let other = Checkpoint(origin: "example.com/other", head: Self.head)
    expectRefusal(.wrongOrigin, try await KeyRotation.sign(other, from: signer, to: next).note.bytes)
    let smaller = Checkpoint(origin: Self.origin, head: TreeHead(size: 2, root: .empty))
    let back = try await KeyRotation.sign(smaller, from: next, to: last)
    expectRefusal(.conflict, first.note.bytes + [0x0a] + back.note.bytes)
    let sameSize = Checkpoint(origin: Self.origin, head: TreeHead(size: 3, root: .empty))
    let beside = try await KeyRotation.sign(sameSize, from: next, to: last)
    expect(.conflict) { _ = try KeyHistory().appending(first).appending(beside) }
    // The same key, and a key of another name.
    await expect(.malformed) { _ = try await KeyRotation.sign(checkpoint, from: signer, to: signer) }
    let renamed = try NoteSigner.generate(name: "example.com/renamed").signer
    await expect(.malformed) { _ = try await KeyRotation.sign(checkpoint, from: signer, to: renamed) }
    // Neither is taken for the other.
    expectRefusal(.malformed, try await note().bytes)
    expect(.malformed) { _ = try Checkpoint(first.note.text) }
  }
}
