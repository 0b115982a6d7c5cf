import Glibc
import Testing

/// A file that is open for reading.
final class ReadDescriptor {
  let number: CInt

  init(_ path: String) throws {
    number = unsafe open(path, O_RDONLY | O_CLOEXEC)
    try #require(number >= 0)
  }

  deinit { close(number) }
}
