import Cryptography
import EventLoop
import Foundation
import Glibc
import TestSupport
import Testing

/// A program of somebody else's that signs with a log's key, which ours never see: a script that has OpenSSL sign.
struct SigningScript {
  /// How it answers.
  enum Manner: String {
    /// With the signature.
    case good
    /// Not at all: it ends with an error.
    case failing
    /// Not at all: it waits for something, with a process of its own.
    case hanging
    /// With something that is no signature.
    case babbling
    /// With a signature by another key.
    case forging
  }

  /// Where it is.
  let path: String
  private let manner: String

  /// Writes the script. The key is that of a note's signer, in words.
  init(of privateKey: String, in files: TemporaryDirectory, named name: String) throws {
    let text = try #require(privateKey.split(separator: "+", maxSplits: 4).last)
    let seed = try #require(Base64.decode(String(text))).dropFirst()
    let key = files.write("\(name).pem", Self.pem(Array(seed)))
    let other = files.write("\(name)-other.pem", Self.pem([UInt8](repeating: 7, count: 32)))
    manner = files.write("\(name)-manner", "\(Manner.good)")
    path = files.write(
      "sign-\(name)",
      """
      #!/bin/sh
      key=\(key)
      case $(cat \(manner)) in
        failing) echo "the module is locked" >&2; exit 7 ;;
        hanging) sleep 3600 & echo $! > \(manner)-new; mv \(manner)-new \(manner)-process; wait ;;
        babbling) echo "signed"; exit ;;
        forging) key=\(other) ;;
      esac
      cat > \(key).text
      openssl pkeyutl -sign -inkey $key -rawin -in \(key).text | base64 -w0
      """, mode: 0o700)
  }

  /// Answers like this from its next start on.
  func behave(_ manner: Manner) throws {
    try Data("\(manner)".utf8).write(to: URL(fileURLWithPath: self.manner), options: .atomic)
  }

  /// The process that it has started last while it was hanging; nil before that.
  var process: pid_t? {
    FileManager.default.contents(atPath: manner + "-process")
      .flatMap { pid_t(String(decoding: $0, as: UTF8.self).split(separator: "\n").first ?? "") }
  }

  private static func pem(_ seed: [UInt8]) -> String {
    // RFC 8410: what stands before an Ed25519 key in PKCS #8.
    let header: [UInt8] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20]
    return "-----BEGIN PRIVATE KEY-----\n\(Base64.encode(header + seed))\n-----END PRIVATE KEY-----\n"
  }
}
