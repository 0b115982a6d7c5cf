import AccountEvents
import AccountStore

@testable import AccountServices

extension Subject {
  /// A manifest has one way to be written; a line names a user by a key that is neither the person nor an address, and as it is
  /// written again it names the same.
  static func checkTransfers(_ bytes: [UInt8]) throws {
    if let manifest = manifest(bytes) {
      try promise("a manifest is read as it is written", manifest.text == bytes)
      try promise(
        "a file lies beside it", manifest.files.allSatisfy { !$0.name.contains("/") && !$0.name.hasPrefix(".") })
    }
    for line in bytes.split(separator: 0x0a, maxSplits: 8, omittingEmptySubsequences: false).map(Array.init) {
      if let user = received(line) { try check(user) }
      if let user = brought(line) {
        try promise("a key is not the person", user.subject.map { !user.key.contains($0.text) } ?? false)
        try promise("a key is no address", !user.key.utf8.contains(UInt8(ascii: "@")))
      }
    }
  }

  private static func check(_ user: NewTransferUser) throws {
    guard let identifier = user.transferSubject else { return try promise("who is received has an identifier", false) }
    try promise("a key is a key", 1...255 ~= user.key.utf8.count && !user.key.contains(identifier.text))
    let written = TransferLine.json(user.key, identifier)
    try promise("written again it is one line", written.firstIndex(of: 0x0a) == written.count - 1)
    try promise("written again it is the same", received(Array(written.dropLast())) == user)
    let quotes = TransferLine.csv(user.key, identifier).count { $0 == UInt8(ascii: "\"") }
    try promise("a row of CSV has all its quotation marks", quotes % 2 == 0)
  }

  private static func manifest(_ bytes: [UInt8]) -> TransferManifest? {
    do throws(TransferManifest.Fault) { return try TransferManifest(bytes) } catch { return nil }
  }

  private static func brought(_ line: [UInt8]) -> NewTransferUser? {
    do throws(TransferLine.Fault) { return try TransferLine.brought(line) } catch { return nil }
  }

  private static func received(_ line: [UInt8]) -> NewTransferUser? {
    do throws(TransferLine.Fault) { return try TransferLine.received(line) } catch { return nil }
  }
}
