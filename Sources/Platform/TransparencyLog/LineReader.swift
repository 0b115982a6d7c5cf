/// Takes lines off the front of a text from outside.
struct LineReader {
  /// The rest of the text.
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  /// The next line, without its newline; nil where no newline is left.
  mutating func next() -> ArraySlice<UInt8>? {
    guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    defer { rest = rest[(end + 1)...] }
    return rest[..<end]
  }

  /// The hashes that stand in lines of their own before the next empty line, which is taken too.
  mutating func hashes(atMost limit: Int) throws(LogError) -> [MerkleHash] {
    var hashes: [MerkleHash] = []
    while let line = next() {
      if line.isEmpty { return hashes }
      guard hashes.count < limit, let hash = MerkleHash(base64: line) else {
        throw .malformed("a proof is at most \(limit) lines, each a hash in Base64")
      }
      hashes.append(hash)
    }
    throw .malformed("a proof without an empty line behind it")
  }

  /// The number that the next line has behind `word` and a blank; nil where it is another line.
  mutating func number(after word: String) -> UInt64? {
    let prefix = Array("\(word) ".utf8)
    guard let line = next(), line.starts(with: prefix) else { return nil }
    return UInt64(decimal: line.dropFirst(prefix.count))
  }
}

extension UInt64 {
  /// The number that these characters are: digits, without a zero before others.
  init?(decimal text: some Collection<UInt8>) {
    guard 1...20 ~= text.count, text.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
      text.count == 1 || text.first != UInt8(ascii: "0")
    else { return nil }
    self.init(String(decoding: text, as: UTF8.self))
  }
}
