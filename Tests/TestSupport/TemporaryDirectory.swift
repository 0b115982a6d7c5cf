public import Glibc

/// A directory that is gone at the end of its test.
public final class TemporaryDirectory {
  /// Its path, without a slash at the end.
  public let path: String

  /// Makes the directory.
  public init() {
    // mkdtemp puts letters of its own in the place of these six.
    var template = Array("/tmp/siwa-test-\(String(repeating: "X", count: 6))".utf8CString)
    guard let name = unsafe mkdtemp(&template) else { fatalError("no temporary directory") }
    path = unsafe String(cString: name)
  }

  deinit { Self.remove(path) }

  private static func remove(_ path: String) {
    var names: [String] = []
    if let directory = unsafe opendir(path) {
      while let entry = unsafe readdir(directory) {
        names.append(
          unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
          })
      }
      unsafe closedir(directory)
    }
    for name in names where name != "." && name != ".." {
      if unsafe unlink("\(path)/\(name)") != 0 { remove("\(path)/\(name)") }
    }
    unsafe rmdir(path)
  }

  /// Writes a file and returns its path. A file that is there is replaced in one step: a program that reads it meanwhile
  /// finds the one or the other, and never an empty one.
  public func write(_ name: String, _ bytes: some Sequence<UInt8>, mode: mode_t = 0o600) -> String {
    let file = "\(path)/\(name)"
    // Beside the directory: a draft within it would be something that a test has not put there.
    var draft = Array("\(path)-\(String(repeating: "X", count: 6))".utf8CString)
    let descriptor = unsafe mkstemp(&draft)
    let bytes = Array(bytes)
    let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
    fchmod(descriptor, mode)
    close(descriptor)
    precondition(unsafe count == bytes.count && rename(draft, file) == 0, "cannot write \(file)")
    return file
  }

  /// Writes a text file and returns its path.
  public func write(_ name: String, _ text: String, mode: mode_t = 0o600) -> String {
    write(name, text.utf8, mode: mode)
  }
}
