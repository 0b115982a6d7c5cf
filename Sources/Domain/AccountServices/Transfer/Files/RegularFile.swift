import Cryptography
import EventLoop
import Glibc

/// Files that somebody else has put there, which have to be regular ones and no larger than is said: nobody is waited for, and
/// nothing is read without end. Their calls block.
enum RegularFile {
  private static let chunk = 1 << 18

  /// Opens a file for reading; whoever calls closes it. A pipe, a device and a folder are refused, and a file of more than
  /// `limit` bytes.
  static func open(_ path: String, upTo limit: Int64) throws(TransferFileFault) -> CInt {
    // Without O_NONBLOCK, whoever opens a pipe waits for its other end.
    let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw TransferFileFault(path, .current) }
    do throws(TransferFileFault) { try check(descriptor, path, upTo: limit) } catch {
      close(descriptor)
      throw error
    }
    return descriptor
  }

  /// All bytes of a file, which are not more than `limit`.
  static func bytes(of path: String, upTo limit: Int) throws(TransferFileFault) -> [UInt8] {
    let descriptor = try open(path, upTo: Int64(limit))
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: min(limit + 1, chunk))
    while true {
      let count = try read(descriptor, path, at: Int64(bytes.count), into: &piece)
      if count == 0 { return bytes }
      bytes += piece[..<count]
      guard bytes.count <= limit else { throw tooLarge(path, Int64(limit)) }
    }
  }

  /// How large an open file is, and its digest. Throws where it is no regular file, or has more than `limit` bytes: those of
  /// `/proc` say that they have none, and may have no end.
  static func digest(
    of descriptor: CInt, _ path: String, upTo limit: Int64
  ) throws(TransferFileFault) -> (size: Int64, digest: SHA256Digest) {
    try check(descriptor, path, upTo: limit)
    var hasher = SHA256Hasher()
    var size: Int64 = 0
    var piece = [UInt8](repeating: 0, count: chunk)
    while true {
      let count = try read(descriptor, path, at: size, into: &piece)
      if count == 0 { return (size, hasher.finish()) }
      unsafe hasher.update(piece.span.extracting(first: count).bytes)
      size += Int64(count)
      guard size <= limit else { throw tooLarge(path, limit) }
    }
  }

  private static func check(_ descriptor: CInt, _ path: String, upTo limit: Int64) throws(TransferFileFault) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw TransferFileFault(path, .current) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw TransferFileFault(path, "it is no regular file, but a pipe, a device or a folder")
    }
    guard Int64(status.st_size) <= limit else { throw tooLarge(path, limit) }
  }

  private static func tooLarge(_ path: String, _ limit: Int64) -> TransferFileFault {
    TransferFileFault(path, "it is larger than \(limit) bytes, which is as much as is read of it")
  }

  /// How many bytes there are from that place on, as many as the piece takes.
  private static func read(
    _ descriptor: CInt, _ path: String, at place: Int64, into piece: inout [UInt8]
  ) throws(TransferFileFault) -> Int {
    while true {
      let count = unsafe piece.withUnsafeMutableBytes {
        unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(place))
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw TransferFileFault(path, .current) }
      return count
    }
  }
}
