@testable import HTTPServer

/// A message that was read, for comparison with other readers: each byte is one character, so that none is lost.
struct ExactMessage: Encodable {
  let method: String
  let target: String
  let path: String
  let query: String
  let version: String
  let fields: [[String]]
  let body: String
  /// Whether the connection ends after it.
  let closes: Bool
  /// After how many bytes of the connection it was complete: where it ends, if they came one by one.
  let end: Int

  init(_ reader: borrowing RequestReader, end: Int) {
    self.end = end
    body = reader.withBody { bytes in
      Self.text((0..<bytes.byteCount).map { unsafe bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) })
    }
    let head = reader.withHead { head, _ in head }
    func part(_ range: Range<Int>) -> String {
      reader.withHead { _, bytes in Self.text(range.map { bytes[$0] }) }
    }
    method = part(head.method)
    target = part((head.method.upperBound + 1)..<(head.query ?? head.path).upperBound)
    path = part(head.path)
    query = head.query.map(part) ?? ""
    version = head.isHTTP11 ? "1.1" : "1.0"
    fields = head.fields.map { [part($0.name), part($0.value)] }
    closes = !head.keepsAlive
  }

  private static func text(_ bytes: [UInt8]) -> String {
    var text = String.UnicodeScalarView()
    for byte in bytes { text.append(Unicode.Scalar(byte)) }
    return String(text)
  }
}
