package import EventLoop
import Glibc

/// A file that was handed over, which is what its manifest says, byte for byte.
///
/// Its calls block. It is open from its check on: nobody can put another one in its place.
package final class TransferSource {
  /// The largest file that is read, in bytes.
  private static let largest: Int64 = 16 << 30

  /// What its lines are told by.
  package let path: String
  private let descriptor: CInt

  /// Opens the file in `directory` that a manifest tells of. Throws where it is another one.
  package init(_ file: TransferManifest.File, in directory: String) throws(TransferFileFault) {
    path = "\(directory)/\(file.name)"
    guard file.size <= TransferSource.largest else {
      throw TransferFileFault(path, "by its manifest it is larger than 16 GiB: have it handed over in parts")
    }
    descriptor = try RegularFile.open(path, upTo: TransferSource.largest)
    let (size, digest) = try RegularFile.digest(of: descriptor, path, upTo: TransferSource.largest)
    guard size == file.size, digest == file.digest else {
      throw TransferFileFault(
        path, "it is not the file that the manifest tells of: its size or its digest is another one")
    }
  }

  deinit { close(descriptor) }

  /// Calls `body` with all lines, some at a time, decrypted by age with the identity in that file where there is one. A fault
  /// at the end says that what came before is not to be relied on.
  @Loop
  package func readLines(
    decryptedWith identity: String?, by age: Age, page: Int,
    _ body: @Loop (_ first: Int64, [[UInt8]]) async throws -> Void
  ) async throws {
    guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw TransferFileFault(path, .current) }
    let decryption: Age.Conversation?
    do throws(SystemError) {
      decryption = try identity.map { identity throws(SystemError) in try age.decrypt(with: identity, descriptor) }
    } catch {
      throw TransferFileFault("age", "it cannot be started: \(error) (Debian's package is age)")
    }
    let reader = LineReader(
      decryption?.descriptor ?? descriptor, limit: TransferLine.longest, mayLackLastEnd: false)
    var number: Int64 = 1
    while true {
      let lines = try next(page, reader, number)
      if lines.isEmpty { break }
      try await body(number, lines)
      number += Int64(lines.count)
    }
    guard let decryption else { return }
    guard decryption.finish() else {
      throw TransferFileFault(path, "age does not decrypt it: its own words are above")
    }
  }

  private func next(_ most: Int, _ reader: LineReader, _ first: Int64) throws(TransferFileFault) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    do throws(LineReader.Fault) {
      while lines.count < most, let line = try reader.next() { lines.append(line) }
    } catch {
      let place = "\(path): line \(first + Int64(lines.count))"
      switch error {
      case .tooLong: throw TransferFileFault(place, "longer than \(TransferLine.longest) bytes")
      case .cutOff: throw TransferFileFault(place, "its end is missing")
      case .system(let error): throw TransferFileFault(place, error)
      }
    }
    return lines
  }
}
