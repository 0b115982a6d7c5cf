/// The header of a file in a POSIX archive (ustar, IEEE 1003.1 pax): a block in front of the file's contents.
///
/// There is one way to write it: nobody's name, no time, and mode 0644, so that the same files make the same archive.
struct TarHeader: Sendable, Equatable {
  /// Headers and contents fill whole blocks.
  static let blockSize = 512
  /// The most bytes of a name that stands in one field.
  static let maximumNameSize = 100
  /// The most bytes of a file whose size eleven octal digits can name.
  static let maximumFileSize = 1 << 33 - 1

  /// The path of the file.
  let name: String
  /// The number of bytes of its contents.
  let size: Int

  /// The header of a file with a name of ASCII characters.
  init(name: String, size: Int) {
    precondition(Self.isValid(name) && 0...Self.maximumFileSize ~= size)
    (self.name, self.size) = (name, size)
  }

  /// Reads a block; nil for any that `block` does not write.
  init?(_ block: [UInt8]) {
    guard block.count == Self.blockSize else { return nil }
    let name = String(decoding: block[..<Self.maximumNameSize].prefix { $0 != 0 }, as: UTF8.self)
    let digits = block[124..<135]
    guard Self.isValid(name), digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "7") ~= $0 }) else { return nil }
    self.name = name
    size = digits.reduce(0) { $0 << 3 | Int($1 - UInt8(ascii: "0")) }
    guard self.block == block else { return nil }
  }

  /// The block.
  var block: [UInt8] {
    var block = [UInt8](repeating: 0, count: Self.blockSize)
    func put(_ text: String, at place: Int) { block.replaceSubrange(place..<place + text.utf8.count, with: text.utf8) }
    put(name, at: 0)
    put("0000644", at: 100)
    for (place, digits) in [(108, 7), (116, 7), (136, 11), (329, 7), (337, 7)] {
      put(String(repeating: "0", count: digits), at: place)
    }
    put(Self.octal(size, 11), at: 124)
    put("0", at: 156)
    put("ustar", at: 257)
    put("00", at: 263)
    // The sum is made with blanks in its own place.
    put(String(repeating: " ", count: 8), at: 148)
    put("\(Self.octal(block.reduce(0) { $0 + Int($1) }, 6))\0 ", at: 148)
    return block
  }

  /// The number of bytes that the contents take, in whole blocks.
  var paddedSize: Int { (size + Self.blockSize - 1) / Self.blockSize * Self.blockSize }

  private static func octal(_ number: Int, _ digits: Int) -> String {
    let text = String(number, radix: 8)
    return String(repeating: "0", count: digits - text.utf8.count) + text
  }

  /// Whether it is a path below the archive's own place, of visible ASCII characters.
  private static func isValid(_ name: String) -> Bool {
    1...maximumNameSize ~= name.utf8.count && name.utf8.allSatisfy { 0x21...0x7e ~= $0 }
      && name.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { !["", ".", ".."].contains($0) }
  }
}
