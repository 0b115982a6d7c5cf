import Configuration
import EventLoop

/// Files that the command line names.
enum InputFile {
  /// Why a file cannot be read.
  struct Fault: Error, CustomStringConvertible {
    let path: String
    let cause: SystemError

    var description: String { "\(path): \(cause)" }
  }

  /// All bytes of a file, which are not more than `limit`.
  static func read(_ path: String, limit: Int) throws(Fault) -> [UInt8] {
    do throws(SystemError) { return try ReadableFile(path).bytes(upTo: limit) } catch {
      throw Fault(path: path, cause: error)
    }
  }
}
