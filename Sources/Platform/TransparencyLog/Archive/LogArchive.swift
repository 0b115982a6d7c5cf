import Glibc

/// A log in one file: a POSIX archive (ustar) of the files that a log's directory has, as `LogArchiveWriter` writes it.
///
/// Where each file stands is read when the archive is opened. Its calls block, for as long as the disk takes.
package final class LogArchive: LogSource {
  /// The most files that an archive can have: those of some five hundred million entries.
  private static let maximumFileCount = 1 << 22

  private let descriptor: CInt
  private let files: [String: Range<Int>]

  /// Opens the archive at `path`. Throws `.malformed` for a file that `LogArchiveWriter` does not write so, such as one
  /// that has a name twice: two readers might not mean the same one.
  package init(_ path: String) throws(LogError) {
    // Non-blocking: opening a pipe of that name would wait for its writer.
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .system(path) }
    do throws(LogError) {
      files = try Self.index(descriptor)
    } catch {
      close(descriptor)
      throw error.at(path)
    }
  }

  deinit { close(descriptor) }

  /// The names of all files.
  package var names: [String] { files.keys.sorted() }

  /// The bytes of a resource; nil where it is not there.
  package func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
    guard let place = files[path] else { return nil }
    guard place.count <= limit else { throw LogError(.tooLarge, path, "more than \(limit) bytes") }
    do throws(LogError) { return try Self.bytes(at: place, of: descriptor) } catch { throw error.at(path) }
  }

  private static func index(_ descriptor: CInt) throws(LogError) -> [String: Range<Int>] {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .system("") }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .malformed("no regular file") }
    let end = Int(status.st_size)
    var (files, place) = ([String: Range<Int>](), 0)
    let block = TarHeader.blockSize
    while place + block <= end {
      let bytes = try bytes(at: place..<place + block, of: descriptor)
      if bytes.allSatisfy({ $0 == 0 }) {
        guard place + 2 * block == end, try self.bytes(at: place + block..<end, of: descriptor) == bytes else { break }
        return files
      }
      guard let header = TarHeader(bytes) else {
        throw .malformed("not an archive as `siwa audit bundle` writes it, at byte \(place)")
      }
      // What it verifies by would otherwise not be the checkpoint of the files that it has.
      guard header.name != LogPath.witnessed else {
        throw .malformed("\(header.name) stands in it: a bundle has one checkpoint")
      }
      guard files.count < maximumFileCount else { throw LogError(.tooLarge, "", "more than \(maximumFileCount) files") }
      let contents = place + block..<place + block + header.size
      guard files.updateValue(contents, forKey: header.name) == nil else {
        throw .malformed("\(header.name) stands in it twice")
      }
      place += block + header.paddedSize
      guard try self.bytes(at: contents.upperBound..<place, of: descriptor).allSatisfy({ $0 == 0 }) else {
        throw .malformed("something stands behind \(header.name)")
      }
    }
    throw .malformed("an archive that does not end where it should: it is cut off, or something was appended")
  }

  /// Bytes that are there unless the file is shorter than its size.
  private static func bytes(at place: Range<Int>, of descriptor: CInt) throws(LogError) -> [UInt8] {
    var failure: LogError?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: place.count) { buffer, count in
      while count < place.count {
        let more = unsafe pread(
          descriptor, buffer.baseAddress?.advanced(by: count), place.count - count, off_t(place.lowerBound + count))
        if more > 0 {
          count += more
        } else if more == 0 {
          break
        } else if errno != EINTR {
          failure = .system("")
          break
        }
      }
    }
    if let failure { throw failure }
    guard bytes.count == place.count else { throw .malformed("an archive that is cut off") }
    return bytes
  }
}
