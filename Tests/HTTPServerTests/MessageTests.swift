import TestSupport
import Testing

@testable import HTTPServer

/// The readers of heads and bodies, without sockets.
@Suite struct MessageTests {
  @Test(arguments: Samples.good)
  func readsWhatIsWellFormed(_ sample: Sample<[ReadMessages.Message]>) {
    let read = ReadMessages(sample.bytes)
    #expect(read.messages == sample.expected)
    #expect(read.end == .complete)
    expectTheSameInPieces(sample.bytes)
  }

  @Test(arguments: Samples.bad)
  func refusesWhatIsNot(_ sample: Sample<Int>) throws {
    let read = ReadMessages(sample.bytes)
    #expect(read.messages.isEmpty)
    guard case .refused(let refusal) = read.end else {
      Issue.record("not refused, but \(read)")
      return
    }
    #expect(refusal.status == sample.expected, "\(refusal)")
    expectTheSameInPieces(sample.bytes)
  }

  /// Also what stands behind a good request is refused, and the good one is still read.
  @Test func readsTheGoodRequestBeforeTheBadOne() {
    let read = ReadMessages(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n".utf8))
    #expect(read.messages == [ReadMessages.Message("GET", "/", fields: ["Host: a"])])
    #expect(read.end == .refused(.bad("HTTP/1.1 needs a Host")))
  }

  /// Every beginning of a good stream is neither refused nor taken for more than it is.
  @Test(arguments: Samples.good)
  func waitsForTheRest(_ sample: Sample<[ReadMessages.Message]>) {
    let (bytes, messages) = (sample.bytes, sample.expected)
    for count in stride(from: 1, to: bytes.count, by: bytes.count > 500 ? 97 : 1) {
      let read = ReadMessages(Array(bytes[..<count]))
      #expect(read.messages == Array(messages.prefix(read.messages.count)))
      #expect(read.messages.count < messages.count)
      #expect(read.end == .incomplete || read.end == .complete && read.messages.count > 0)
    }
  }

  /// Whatever it is, the pieces in which it comes change nothing.
  @Test func readsTheSameHoweverTheBytesAreCut() {
    var random = SeededRandom()
    let samples = Samples.good.map(\.bytes) + Samples.bad.map(\.bytes)
    for _ in SeededRandom.rounds(500) {
      let sample = Array((samples.randomElement(using: &random) ?? []).prefix(600))
      let bytes = random.mutation(of: sample, characters: "\r\n :;,0123456789abcdefGETHost/.%\t")
      expectTheSameInPieces(bytes, &random)
    }
  }

  /// A refused body stays refused: it must not be read again as if it had not been taken apart.
  @Test func neverReadsARefusedBodyAnew() {
    var reader = RequestReader(limits: ReadMessages.limits)
    // Once the framing of the first chunk is off, what stands there looks like an empty body and another request.
    let hidden = "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
    let bytes = Array(Samples.chunked("\(String(hidden.utf8.count, radix: 16))\r\n\(hidden)\r\nffff\r\n").utf8)
    _ = unsafe reader.receive { room in
      for index in bytes.indices { unsafe room[index] = bytes[index] }
      return bytes.count
    }
    guard case .complete = reader.readHead() else {
      Issue.record("no head")
      return
    }
    guard case .refused(let refusal) = reader.readBody(limit: 64) else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.status == 413)
    let (again, isComplete) = (reader.readBody(limit: .max), reader.isComplete)
    #expect(again == .refused(refusal))
    #expect(!isComplete)
    let count = reader.withBody { $0.byteCount }
    #expect(count == 0)
  }

  @Test func readsOnAfterItsBufferWasGivenBack() {
    var reader = RequestReader(limits: ReadMessages.limits)
    for _ in 0..<3 {
      for piece in ["GET / HTTP/1.1\r\n", "Host: a\r\n\r\n"] {
        let bytes = Array(piece.utf8)
        _ = unsafe reader.receive { room in
          for index in bytes.indices { unsafe room[index] = bytes[index] }
          return bytes.count
        }
        reader.release()  // not while there is something in it
      }
      #expect(reader.readHead() == .complete(27))
      reader.finish()
      reader.release()
    }
  }

  @Test func takesInNoMoreThanOneMessageAtItsLimits() {
    var reader = RequestReader(limits: ReadMessages.limits)
    var taken = 0
    while let count = unsafe reader.receive({ room in room.count }) { taken += count }
    #expect(taken <= 1024 + 4096 + RequestReader.initialCapacity)
  }

  private func expectTheSameInPieces(_ bytes: [UInt8]) {
    var random = SeededRandom()
    expectTheSameInPieces(bytes, &random)
  }

  private func expectTheSameInPieces(_ bytes: [UInt8], _ random: inout SeededRandom) {
    let whole = ReadMessages(bytes)
    #expect(whole.end != .stuck, "seed \(random.seed)")
    #expect(ReadMessages(bytes, pieces: Array(repeating: 1, count: bytes.count)) == whole, "seed \(random.seed)")
    for _ in 0..<3 {
      var pieces: [Int] = []
      while pieces.reduce(0, +) < bytes.count {
        pieces.append(Int.random(in: 1...max(1, bytes.count / 3), using: &random))
      }
      #expect(ReadMessages(bytes, pieces: pieces) == whole, "seed \(random.seed), pieces \(pieces)")
    }
  }
}
