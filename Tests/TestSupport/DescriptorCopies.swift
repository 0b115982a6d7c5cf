import Glibc

/// Copies of this process's descriptors of a file, as a program that is being started has them for a moment, until they are
/// closed in it (O_CLOEXEC).
public final class DescriptorCopies: Sendable {
  private let copies: [CInt]

  /// Copies of all that there are of the file at `path`.
  public init(of path: String) {
    let limit = CInt(sysconf(CInt(_SC_OPEN_MAX)))
    let all = (0..<min(limit, 65_536)).filter { descriptor in
      var name = [CChar](repeating: 0, count: Int(PATH_MAX))
      let count = unsafe readlink("/proc/self/fd/\(descriptor)", &name, name.count)
      return count > 0 && String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) == path
    }
    copies = all.map { fcntl($0, F_DUPFD_CLOEXEC, 0) }
  }

  /// How many there are.
  public var count: Int { copies.count }

  deinit { for copy in copies { close(copy) } }
}
