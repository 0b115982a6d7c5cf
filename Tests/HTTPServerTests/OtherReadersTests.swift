import EventLoop
import Foundation
import TestSupport
import Testing

@testable import HTTPServer

/// Whatever we accept, two others read the same way: so nothing can be smuggled past whoever stands in front of us.
@Suite struct OtherReadersTests {
  @Test func judgesTheCorpusAsItSays() throws {
    let corpus = try Corpus()
    #expect(corpus.lines.count > 600)
    for line in corpus.lines {
      let read = ReadMessages(line.bytes, limits: Corpus.limits)
      #expect(Corpus.verdict(read) == line.verdict, "line \(line.number)")
    }
  }

  @Test(Python.isThere) func readsTheCorpusAsOthersDo() async throws {
    try await expectAgreement(on: try Corpus().lines.map { Connection($0.bytes) })
  }

  @Test(Python.isThere) func readsWhatIsNearTheCorpusAsOthersDo() async throws {
    let random = SeededRandom()
    let lines = try Corpus().lines
    // It takes a while, and must not do so on one of the few threads that all tests share.
    let connections = await BlockingThread(named: "mutations").run {
      var random = random
      return SeededRandom.rounds(500).map { _ in Self.near(lines, &random) }
    }
    try await expectAgreement(on: connections, "SEED=\(random.seed)")
  }

  /// A connection that differs a little from those of the corpus, and of which we accept something.
  private static func near(_ lines: [Corpus.Line], _ random: inout SeededRandom) -> Connection {
    // Mostly from what is good: what is bad already seldom becomes better.
    let good = lines.filter { !$0.verdict.hasPrefix("0") }
    while true {
      var bytes = (random.next() % 4 == 0 ? lines : good).randomElement(using: &random)?.bytes ?? []
      if random.next() % 4 == 0 {
        random.splice(lines.randomElement(using: &random)?.bytes ?? [], into: &bytes)
      } else {
        random.change(&bytes)
      }
      while random.next() % 4 == 0 { random.change(&bytes) }
      let connection = Connection(bytes)
      if !connection.messages.isEmpty { return connection }
    }
  }

  /// Bytes, and what we accept of them.
  private struct Connection: Encodable {
    let input: String
    let messages: [ExactMessage]

    init(_ bytes: [UInt8]) {
      input = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      // Byte by byte, so that it is known where each message ends.
      messages = Corpus.accepted(
        ReadMessages(bytes, pieces: Array(repeating: 1, count: bytes.count), limits: Corpus.limits))
    }
  }

  private func expectAgreement(
    on connections: [Connection], _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let encoder = JSONEncoder()
    let lines = try connections.map { try encoder.encode($0) + [0x0a] }.joined()
    let outcome = try await Python.run("Tests/HTTPServerTests/Python/read-requests.py", input: Array(lines))
    #expect(outcome.end == .exit(0), "\(outcome.errors)", sourceLocation: sourceLocation)
    for difference in String(decoding: outcome.output, as: UTF8.self).split(separator: "\n") {
      Issue.record("\(difference) \(comment)", sourceLocation: sourceLocation)
    }
  }
}

extension SeededRandom {
  private static let characters = Array(
    "\r\n\r\n\t  ::;,=\"\\0123456789abcdefGETHost/.%?#-_\u{0}\u{b}\u{7f}\u{e9}".utf8)

  /// Changes one place.
  fileprivate mutating func change(_ bytes: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    let place = Int.random(in: 0..<bytes.count, using: &self)
    let written = Self.characters.randomElement(using: &self) ?? 0
    switch Int.random(in: 0..<5, using: &self) {
    case 0: bytes.remove(at: place)
    case 1: bytes.insert(written, at: place)
    case 2: bytes.insert(contentsOf: bytes[place..<min(place + 9, bytes.count)], at: place)
    case 3: bytes[place] ^= 0x20
    default: bytes[place] = written
    }
  }

  /// Puts a line of one connection in front of a line of another.
  fileprivate mutating func splice(_ other: [UInt8], into bytes: inout [UInt8]) {
    func starts(_ bytes: [UInt8]) -> [Int] { [0] + bytes.indices.filter { bytes[$0] == 0x0a }.map { $0 + 1 } }
    let from = starts(other).randomElement(using: &self) ?? 0
    let line = other[from...].prefix { $0 != 0x0a } + [0x0a]
    bytes.insert(contentsOf: line, at: starts(bytes).randomElement(using: &self) ?? 0)
  }
}
