import Configuration
import EventLoop
import Glibc

/// Files that the command line names and that are written.
enum OutputFile {
  /// Why a file or a directory cannot be written.
  struct Fault: Error, CustomStringConvertible {
    let path: String
    let cause: any Error

    var description: String { "\(path): \(cause)" }
  }

  /// Runs what writes to a path, and says which one it is where that fails.
  static func writing<Value>(to path: String, _ body: () throws -> Value) throws -> Value {
    do { return try body() } catch { throw Fault(path: path, cause: error) }
  }

  /// Makes a directory where there is none.
  static func makeDirectory(_ path: String) throws(Fault) {
    guard unsafe mkdir(path, 0o755) == 0 || errno == EEXIST else { throw Fault(path: path, cause: SystemError.current) }
  }
}

/// Files that the command line names and that are read.
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
