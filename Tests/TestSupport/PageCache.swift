import CLinux
import Glibc
public import Testing

/// What the kernel has in its memory of files.
public enum PageCache {
  /// Skips a test, visibly, where the kernel does not say of temporary files whether it has them in its memory, or does not
  /// give that up when it is asked to.
  public static var isTold: ConditionTrait {
    .enabled("needs temporary files on a file system that knows RWF_NOWAIT and POSIX_FADV_DONTNEED") {
      let files = TemporaryDirectory()
      let path = files.write("file", String(repeating: "x", count: 65_536))
      let file = unsafe open(path, O_RDWR | O_CLOEXEC)
      guard file >= 0 else { return false }
      defer { close(file) }
      var bytes = [UInt8](repeating: 0, count: 4096)
      guard fsync(file) == 0, unsafe clinux_read_from_memory(file, &bytes, bytes.count, 0) == bytes.count else {
        return false
      }
      guard posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0 else { return false }
      return unsafe clinux_read_from_memory(file, &bytes, bytes.count, 0) < 0 && errno == EAGAIN
    }
  }
}
