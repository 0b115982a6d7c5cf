import Configuration
import Cryptography
import EventLoop

/// Files that hold a key: 32 bytes as base64url, readable by nobody else.
enum KeyFile {
  /// The key in the file at `path`.
  static func read(_ path: String) throws(KeyFileError) -> [UInt8] {
    let isPrivate: Bool
    let text: [UInt8]
    do throws(SystemError) {
      let file = try ReadableFile(path)
      (isPrivate, text) = (file.isPrivate, try file.bytes(upTo: 1024))
    } catch {
      throw KeyFileError("\(path) cannot be read: \(error)")
    }
    guard isPrivate else {
      throw KeyFileError(
        "\(path) belongs to another user, or others can read it; it must be this user's own, with mode 0600")
    }
    let digits = String(decoding: text.last == UInt8(ascii: "\n") ? text.dropLast() : text[...], as: UTF8.self)
    guard let bytes = Base64URL.decode(digits), bytes.count == AES256GCM.keySize else {
      throw KeyFileError("\(path) holds no key; `siwa store create-key` makes one")
    }
    return bytes
  }
}

/// Why a file cannot be used as a key. It never holds anything of the file's content.
package struct KeyFileError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The file and what is wrong with it.
  package let description: String

  init(_ description: String) { self.description = description }
}
