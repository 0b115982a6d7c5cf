import AccountServices
import Testing
import TransparencyLog

/// Which checkpoints witnesses are asked to cosign.
@Suite struct WitnessedCheckpointsTests {
  private static let origin = "example.com/log"

  private let signer: NoteSigner

  init() throws { signer = try NoteSigner.generate(name: Self.origin).signer }

  private func cosigners(_ count: Int) throws -> [Cosigner] {
    try (0..<count).map {
      try Cosigner(name: "witness.example/\($0)", seed: [UInt8](repeating: UInt8($0), count: 32))
    }
  }

  private func note(_ head: TreeHead) async throws -> SignedNote {
    try await SignedNote.sign(Checkpoint(origin: Self.origin, head: head).text, with: signer)
  }

  /// Each witness answers after so many new checkpoints.
  @Test(arguments: [[1], [1, 1], [3, 5], [15, 23, 31], [20, 25, 30, 35, 40], [70, 90]])
  func witnessesOfAnyPaceMeet(paces: [Int]) async throws {
    let cosigners = try cosigners(paces.count)
    var checkpoints = WitnessedCheckpoints(cosigners.map(\.key), quorum: cosigners.count, witnessedSize: nil)
    var next = [UInt64](repeating: 0, count: paces.count)
    var asked: [(head: TreeHead, note: SignedNote)?] = Array(repeating: nil, count: paces.count)
    var (last, longest) = (0, 0)
    for time in 1...1000 {
      let head = TreeHead(size: UInt64(time), root: .empty)
      checkpoints.announce(try await note(head), head)
      for (witness, pace) in paces.enumerated() where time % pace == 0 {
        if let (head, note) = asked[witness] {
          let answer = try SignedNote(text: note.text, [cosigners[witness].cosign(note.text, at: 1)])
          if try checkpoints.add(answer, of: head.size).witnessed != nil { last = time }
          next[witness] = head.size + 1
        }
        asked[witness] = checkpoints.next(from: next[witness])
      }
      longest = max(longest, time - last)
    }
    #expect(longest <= 4 * (paces.max() ?? 0), "the last checkpoint that all have cosigned stood for \(longest)")
  }

  @Test func whoHasCosignedTheNewestOneHasNothingToDo() async throws {
    var checkpoints = WitnessedCheckpoints(try cosigners(2).map(\.key), quorum: 2, witnessedSize: nil)
    #expect(checkpoints.next(from: 0) == nil)
    for size in UInt64(1)...12 {
      let head = TreeHead(size: size, root: .empty)
      checkpoints.announce(try await note(head), head)
    }
    var (next, sizes) = (UInt64(2), [UInt64]())
    while let (head, _) = checkpoints.next(from: next) {
      sizes.append(head.size)
      next = head.size + 1
    }
    #expect(sizes == [9, 11, 12])
  }

  /// One that is gone for good takes nothing from readers who ask for fewer.
  @Test func asManyAsHaveToAreEnough() async throws {
    let cosigners = try cosigners(3)
    var checkpoints = WitnessedCheckpoints(cosigners.map(\.key), quorum: 2, witnessedSize: nil)
    func cosign(_ note: SignedNote, _ size: UInt64, _ witness: Int) throws -> [String]? {
      let answer = try SignedNote(text: note.text, [cosigners[witness].cosign(note.text, at: 1)])
      return try checkpoints.add(answer, of: size).witnessed?.signatures.map(\.name).filter { $0 != Self.origin }
    }
    var notes: [SignedNote] = []
    for size in UInt64(1)...3 {
      let head = TreeHead(size: size, root: .empty)
      notes.append(try await note(head))
      checkpoints.announce(notes[notes.count - 1], head)
    }
    #expect(try cosign(notes[1], 2, 0) == nil)
    #expect(try cosign(notes[1], 2, 0) == nil, "one is not two")
    #expect(try cosign(notes[1], 2, 2) == ["witness.example/0", "witness.example/2"])
    #expect(try cosign(notes[1], 2, 1)?.count == 3, "whoever asks for all may go by it, too")
    #expect(try cosign(notes[0], 1, 0) == nil)
    #expect(try cosign(notes[0], 1, 1) == nil, "a larger one stands there")
  }

  /// The first checkpoint of a process may be by a key that a witness does not know any more.
  @Test func whoRefusesACheckpointIsGivenTheNewestOne() async throws {
    var checkpoints = WitnessedCheckpoints(try cosigners(2).map(\.key), quorum: 2, witnessedSize: nil)
    for size in UInt64(1)...12 {
      let head = TreeHead(size: size, root: .empty)
      checkpoints.announce(try await note(head), head)
    }
    #expect(checkpoints.next(from: 1)?.head.size == 1)
    #expect(checkpoints.next(from: 1, isRefusing: true)?.head.size == 12)
    #expect(checkpoints.next(from: 13, isRefusing: true) == nil)
  }
}
