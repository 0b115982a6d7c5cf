import COpenSSL
import EventLoop
import Glibc

/// What became of a look at the files of a server's certificate.
public enum CertificateRenewal: Sendable, Equatable {
  /// They are what they were at the last look.
  case unchanged
  /// New handshakes use the new pair.
  case renewed
  /// They changed and cannot be used, which may be the moment between the two steps of a replacement: the next look
  /// will tell.
  case unsettled
  /// They cannot be used: the old pair stays. Said once for each change.
  case failed(HTTPServerError)
}

/// The certificate that a server presents, and how it follows its files.
///
/// The files are looked at from time to time, by what is in them: that is right for a file that is written over, for one
/// that is renamed over it, and for a symbolic link anywhere in its path that points elsewhere (certbot, Kubernetes'
/// `..data`), where to watch the file, its directory and all links' would take more and see the same.
@Loop
final class ServedCertificate {
  /// What new handshakes use. Connections keep the one under which they were made.
  private(set) var context: TLSContext
  private let files: TLSServerConfiguration
  private var inUse: Contents
  /// What could not be used, and whether that was said.
  private var unusable: (contents: Contents, isSaid: Bool)?
  private var ticketKeysEnd: MonotonicTime

  init(_ files: TLSServerConfiguration) throws(HTTPServerError) {
    self.files = files
    // First: what changes from here on is noticed by the next look.
    inUse = Contents(files)
    context = try TLSContext(files)
    ticketKeysEnd = .now + TLSContext.ticketLifetime
  }

  /// Looks at the files. `insisting`: somebody asks now, and is answered whatever was said before.
  func look(insisting: Bool, at now: MonotonicTime = .now) -> CertificateRenewal {
    // Also where nobody connects: the keys of tickets must not outlive their hour.
    _ = contextForHandshake(at: now)
    let contents = Contents(files)
    if contents == inUse {
      unusable = nil
      return .unchanged
    }
    let wasSeen = unusable?.contents == contents
    if wasSeen, unusable?.isSaid == true, !insisting { return .unchanged }
    do throws(HTTPServerError) {
      context = try TLSContext(files)
      ticketKeysEnd = now + TLSContext.ticketLifetime
      (inUse, unusable) = (contents, nil)
      return .renewed
    } catch {
      unusable = (contents, wasSeen || insisting)
      return wasSeen || insisting ? .failed(error) : .unsettled
    }
  }

  /// The context for a handshake that begins now.
  func contextForHandshake(at now: MonotonicTime) -> TLSContext {
    if now >= ticketKeysEnd {
      context.renewTicketKeys()
      ticketKeysEnd = now + TLSContext.ticketLifetime
    }
    return context
  }
}

/// What is in the two files: digests, or why they cannot be read.
private struct Contents: Equatable {
  private let certificate: [UInt8]
  private let key: [UInt8]

  /// Reads both: a few kilobytes of a local disk.
  init(_ files: TLSServerConfiguration) {
    certificate = Self.digest(files.certificateFile)
    key = Self.digest(files.privateKeyFile)
  }

  private static func digest(_ path: String) -> [UInt8] {
    // Not blocking: of what is no file, a pipe's other end may never come.
    let number = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard number >= 0 else { return ["\(errno)"].flatMap(\.utf8) }
    defer { close(number) }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    var count = 0
    while count < bytes.count {
      let more = unsafe bytes.withUnsafeMutableBytes { all in
        unsafe read(number, UnsafeMutableRawBufferPointer(rebasing: all[count...]).baseAddress, all.count - count)
      }
      if more < 0 { return ["\(errno)"].flatMap(\.utf8) }
      if more == 0 { break }
      count += more
    }
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    _ = unsafe SHA256(bytes, count, &digest)
    unsafe bytes.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, count) }
    return digest
  }
}
