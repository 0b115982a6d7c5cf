/// The pieces of JSON for those who write a text of known shape straight into their bytes.
public enum JSON {
  /// Appends `text` as a string with as few escapes as there can be: the form of RFC 8785 §3.2.2.2.
  public static func append(_ text: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    var text = text
    let isPlain = text.withUTF8 { bytes in
      guard unsafe !needsEscapes(bytes) else { return false }
      unsafe output.append(contentsOf: bytes)
      return true
    }
    if !isPlain { appendEscaped(text, to: &output) }
    output.append(UInt8(ascii: "\""))
  }

  private static func needsEscapes(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    // To the end and without a branch, so that many bytes are looked at together: most texts are plain.
    var special: UInt8 = 0
    for index in bytes.indices {
      let byte = unsafe bytes[index]
      special |= (byte < 0x20 ? 1 : 0) | (byte == UInt8(ascii: "\"") ? 1 : 0) | (byte == UInt8(ascii: "\\") ? 1 : 0)
    }
    return special != 0
  }

  private static func appendEscaped(_ text: String, to output: inout [UInt8]) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): output.append(contentsOf: [UInt8(ascii: "\\"), byte])
      case 0x08: output.append(contentsOf: "\\b".utf8)
      case 0x09: output.append(contentsOf: "\\t".utf8)
      case 0x0a: output.append(contentsOf: "\\n".utf8)
      case 0x0c: output.append(contentsOf: "\\f".utf8)
      case 0x0d: output.append(contentsOf: "\\r".utf8)
      case 0..<0x20:
        output.append(contentsOf: "\\u00".utf8)
        output.append(contentsOf: (byte < 0x10 ? "0" : "").utf8)
        output.append(contentsOf: String(byte, radix: 16).utf8)
      default: output.append(byte)
      }
    }
  }

  /// Appends `value` as a number.
  ///
  /// Other programs read JSON's numbers as doubles, so one beyond 2⁵³ − 1 is a mistake of the caller's.
  public static func append(_ value: Int64, to output: inout [UInt8]) {
    precondition(value.magnitude < 1 << 53, "JSON does not carry this number exactly")
    output.append(contentsOf: String(value).utf8)
  }
}
