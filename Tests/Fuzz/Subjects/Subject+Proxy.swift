@testable import HTTPServer

extension Subject {
  /// All pieces of a header lead to one end; what is not read belongs to the peer; what is refused stays so.
  static func checkProxy(_ bytes: [UInt8]) throws(BrokenPromise) {
    let whole = ProxyHeader.read(bytes)
    var isOver = false
    for count in 0...min(bytes.count, ProxyHeader.longest) {
      let step = ProxyHeader.read(Array(bytes[..<count]))
      switch step {
      case .incomplete: try promise("what is decided stays decided", !isOver)
      case .complete(let header):
        try promise("a header has no more bytes than there are", 1...count ~= header.length)
        try promise("what is behind it changes nothing", step == whole)
        isOver = true
      case .refused:
        try promise("what is refused stays refused", whole == .refused)
        isOver = true
      }
    }
    if bytes.count >= ProxyHeader.longest { try promise("a decision comes within the longest header", isOver) }
  }
}
