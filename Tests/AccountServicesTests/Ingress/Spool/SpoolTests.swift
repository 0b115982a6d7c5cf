import AccountEvents
import AccountServices
import EventLoop
import TestSupport
import Testing

/// What the spool holds, in which order, and how much of it.
@Loop @Suite(.serialized) struct SpoolTests {
  private let rig = SpoolRig()

  @Test(.timeLimit(.minutes(2)))
  func givesBackWhatItWasGivenInItsOrder() async throws {
    try await rig.open { spool in
      #expect(spool.depth == 0 && spool.bytes == 0 && spool.oldest == nil)
      var sequences: [Int64] = []
      for number in 1...5 {
        sequences.append(try await spool.insert(SpoolRig.record(number, of: number == 3 ? nil : "ada")))
        rig.advance(by: .seconds(1))
      }
      #expect(sequences == sequences.sorted() && Set(sequences).count == 5)
      let records = try await spool.read(after: 0, limit: 10)
      #expect(records.map(\.sequence) == sequences)
      #expect(records.map(\.record) == (1...5).map { SpoolRig.record($0, of: $0 == 3 ? nil : "ada") })
      #expect(records.map(\.since.milliseconds) == (0..<5).map { SpoolRig.start + $0 * 1000 })
      #expect(try await spool.read(after: sequences[1], limit: 2).map(\.sequence) == [sequences[2], sequences[3]])
      #expect(spool.depth == 5 && spool.oldest?.milliseconds == SpoolRig.start)
      await spool.remove(sequences[0])
      await spool.remove(sequences[3])
      await spool.remove(sequences[3])
      await spool.remove(77)
      #expect(try await spool.read(after: 0, limit: 10).map(\.record.number) == [2, 3, 5])
      #expect(spool.depth == 3 && spool.oldest?.milliseconds == SpoolRig.start + 1000)
    }
  }
}
