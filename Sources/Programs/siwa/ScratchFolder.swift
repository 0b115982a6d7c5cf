import Cryptography
import EventLoop
import Glibc

/// Folders that only this user can read, below `TMPDIR`, or /tmp.
enum TemporaryFolder {
  /// Makes a new one, whose name begins so, and returns its path.
  static func make(named prefix: String) throws(SystemError) -> String {
    let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    // mkdtemp puts letters of its own in the place of these six.
    var template = Array("\(parent)/\(prefix)\(String(repeating: "X", count: 6))".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw .current }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// A folder that only this user can read, gone when the program ends: certificates and keys of a rehearsal.
struct ScratchFolder: ~Copyable {
  let path: String

  /// Makes the folder.
  init() throws(SystemError) { path = try TemporaryFolder.make(named: "siwa-") }

  deinit { Self.remove(path) }

  /// The path of a file in the folder.
  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file that only this user can read.
  func write(_ text: String, to name: String) throws(SystemError) {
    try DurableFile(path: file(name)).create(with: Array(text.utf8))
  }

  private static func remove(_ folder: String) {
    for name in names(in: folder) where unsafe unlink("\(folder)/\(name)") != 0 { remove("\(folder)/\(name)") }
    unsafe rmdir(folder)
  }

  private static func names(in path: String) -> [String] {
    guard let folder = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { raw in
        unsafe String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
