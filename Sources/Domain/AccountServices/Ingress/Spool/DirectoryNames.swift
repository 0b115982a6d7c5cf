import EventLoop
import Glibc

/// The names of what lies in a directory.
enum DirectoryNames {
  /// All of them but the directory's own and its parent's, in no order.
  static func read(_ path: String) throws(SystemError) -> [String] {
    guard let directory = unsafe opendir(path) else { throw .current }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
