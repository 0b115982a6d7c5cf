import Glibc

/// Where the file system is mounted that something lies on: who begins a store or a log there sees whether it is the right one.
enum MountPoint {
  /// For the end of a sentence; empty where that cannot be found out, or the place is no path.
  static func words(of place: String) -> String {
    of(place).map { ", on the file system that is mounted at \($0)" } ?? ""
  }

  /// The uppermost directory of the file system that a path lies on; nil where that cannot be found out.
  private static func of(_ path: String) -> String? {
    guard let resolved = unsafe realpath(path, nil) else { return nil }
    defer { unsafe free(resolved) }
    var path = unsafe String(cString: resolved)
    guard let device = device(of: path) else { return nil }
    while path != "/" {
      let end = path.lastIndex(of: "/") ?? path.startIndex
      let parent = end == path.startIndex ? "/" : String(path[..<end])
      guard Self.device(of: parent) == device else { return path }
      path = parent
    }
    return path
  }

  private static func device(of path: String) -> dev_t? {
    var status = stat()
    return unsafe stat(path, &status) == 0 ? status.st_dev : nil
  }
}
