import CLinux
import Glibc

/// A call of the operating system that failed.
public struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The value of `errno`.
  public let code: CInt

  /// An error with the given `errno`.
  public init(code: CInt) { self.code = code }

  /// What `errno` says now; to be read right after the failing call.
  public static var current: SystemError { SystemError(code: errno) }

  /// What the C library says about the code.
  public var description: String {
    var text = [CChar](repeating: 0, count: 128)
    guard unsafe clinux_strerror(code, &text, text.count) == 0 else { return "error \(code)" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
