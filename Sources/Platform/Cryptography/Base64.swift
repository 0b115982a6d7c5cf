import COpenSSL

/// Base64 with its padding (RFC 4648 §4), without line breaks.
public enum Base64 {
  /// The text for these bytes.
  public static func encode(_ bytes: [UInt8]) -> String {
    // Four characters for three bytes, and a zero behind them.
    var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
    let count = unsafe EVP_EncodeBlock(&text, bytes, CInt(bytes.count))
    return String(decoding: text.prefix(Int(count)), as: UTF8.self)
  }

  /// The bytes that `text` stands for; nil for anything that `encode` does not write.
  public static func decode(_ text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    guard characters.count.isMultiple(of: 4), let length = CInt(exactly: characters.count) else { return nil }
    var bytes = [UInt8](repeating: 0, count: characters.count / 4 * 3)
    let count = unsafe EVP_DecodeBlock(&bytes, characters, length)
    guard count >= 0 else { return nil }
    // OpenSSL counts the padding as zeros, and passes over what stands around the text.
    let padding = characters.suffix(2).count { $0 == UInt8(ascii: "=") }
    let decoded = Array(bytes.prefix(max(0, Int(count) - padding)))
    return encode(decoded) == text ? decoded : nil
  }
}
