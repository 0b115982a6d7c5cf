import LogSupport
import Synchronization

@testable import TransparencyLog

/// A log in memory: its files, as a writer would have written them.
final class MemoryLog: LogSource {
  private let files = Mutex<[String: [UInt8]]>([:])
  private let reads = Mutex<[String]>([])

  /// What was read so far.
  var read: [String] { reads.withLock { $0 } }

  /// A log of these entries, with the partial files of its size.
  init(_ entries: [[UInt8]]) {
    var log = GrowingLog()
    for entry in entries { log.append(entry) }
    for file in log.files { self[file.path.text] = file.bytes }
  }

  subscript(path: String) -> [UInt8]? {
    get { files.withLock { $0[path] } }
    set { files.withLock { $0[path] = newValue } }
  }

  func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
    reads.withLock { $0.append(path) }
    let bytes = self[path]
    if let bytes, bytes.count > limit { throw LogError(.tooLarge, path, "more than \(limit) bytes") }
    return bytes
  }
}

/// Entries of different sizes, an empty one among them.
func sampleEntries(_ count: Int) -> [[UInt8]] {
  (0..<count).map(sampleEntry)
}

/// The same in a hexadecimal text.
func hexadecimal(_ hash: MerkleHash) -> String {
  hash.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
