import Cryptography
import EventLoop
import JSON

/// How far a replay is, in a file: whoever begins it anew goes on there, also where the process was killed.
package struct ReplayJournal: Sendable, Equatable {
  /// Why a journal cannot be gone on with, or written.
  package struct Fault: Error, Sendable, CustomStringConvertible {
    /// Names the file and what is wrong.
    package let description: String
  }

  private static let size = 1 << 20
  private static let limits = JSONLimits(bytes: size, depth: 8, members: 32_768)

  /// Which replay: a digest of what is replayed and where to, as the words may name a person.
  private let subject: String
  /// What is to be read still, of each partition.
  package var left: [Int32: Range<Int64>]

  /// A journal of the replay that these words describe.
  package init(of words: [String], left: [Int32: Range<Int64>]) {
    subject = Base64URL.encode(SHA256.digest(of: Array(words.joined(separator: "\0").utf8)).bytes)
    self.left = left
  }

  /// Reads the journal at `path` of the replay that these words describe; nil where there is none. Throws where it is of
  /// another replay.
  package init?(of words: [String], at path: String) throws(Fault) {
    let bytes: [UInt8]?
    do throws(DurableFile.Fault) { bytes = try DurableFile(path: path).read(upTo: Self.size) } catch {
      throw Fault(description: "\(path): \(error)")
    }
    guard let bytes else { return nil }
    self.init(of: words, left: [:])
    var found: String?
    do throws(JSONError) {
      try unsafe JSONReader.read(bytes.span.bytes, Self.limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          switch name {
          case "replay": found = try value.readString()
          case "left": left = try Self.readRanges(&value)
          default: break
          }
        }
      }
    } catch {
      throw Fault(description: "\(path): not of a replay (\(error.code.rawValue))")
    }
    guard found == subject else { throw Fault(description: "\(path): of another replay") }
  }

  /// Throws where what is to be read still ends behind the records that there are: they are of a topic that was made anew, and
  /// nobody knows which of them were replayed.
  package func expect(in held: [Int32: Range<Int64>], at path: String) throws(Fault) {
    for (partition, range) in left.sorted(by: { $0.key < $1.key }) {
      guard let there = held[partition], there.upperBound < range.upperBound else { continue }
      throw Fault(
        description:
          "\(path): of another topic: partition \(partition) ends at \(there.upperBound), before what is left")
    }
  }

  /// Replaces the journal at `path`, and returns once it would survive a power failure.
  package func write(to path: String) throws(Fault) {
    let ranges = left.sorted { $0.key < $1.key }.map { partition, range in
      JSONValue.Member(String(partition), [.integer(range.lowerBound), .integer(range.upperBound)])
    }
    let json: JSONValue = ["replay": .string(subject), "left": .object(ranges)]
    do throws(SystemError) { try DurableFile(path: path).replace(with: json.bytes + [UInt8(ascii: "\n")]) } catch {
      throw Fault(description: "\(path): \(error)")
    }
  }

  private static func readRanges(_ reader: inout JSONReader) throws(JSONError) -> [Int32: Range<Int64>] {
    var ranges: [Int32: Range<Int64>] = [:]
    try reader.readObject { name, value throws(JSONError) in
      var bounds: [Int64] = []
      let offset = value.offset
      try value.readArray { bound throws(JSONError) in bounds.append(try bound.readInteger()) }
      guard let partition = Int32(name), partition >= 0, bounds.count == 2, bounds[0] >= 0, bounds[0] <= bounds[1]
      else { throw JSONError(.malformed, at: offset) }
      ranges[partition] = bounds[0]..<bounds[1]
    }
    return ranges
  }
}
