/// Base64url without padding (RFC 4648 §5 as RFC 7515 §2 restricts it): the text form of everything in a JWS.
///
/// The decoder is strict, so that one value has one spelling: no padding, no line breaks, no characters of the other
/// alphabet, no length that no encoder makes, and unused bits of the last character must be zero. With a lenient
/// decoder a token could be changed without its signature noticing.
public enum Base64URL {
  /// The bytes that `text` stands for, or nil if it is not strict base64url.
  public static func decode(_ text: RawSpan) -> [UInt8]? {
    let (groups, rest) = text.byteCount.quotientAndRemainder(dividingBy: 4)
    guard rest != 1 else { return nil }  // no encoder makes so many
    // As much of the text first, to be overwritten: the initializers that leave memory uninitialized, or fill it, look up a
    // type at run time, which takes longer.
    var bytes = unsafe text.withUnsafeBytes { text in
      unsafe Array(UnsafeRawBufferPointer(rebasing: text[..<(groups * 3 + max(0, rest - 1))]))
    }
    let isValid = unsafe bytes.withUnsafeMutableBytes { output in
      unsafe text.withUnsafeBytes { input in unsafe decode(input, output) }
    }
    return isValid ? bytes : nil
  }

  /// The bytes that `text` stands for, or nil if it is not strict base64url.
  public static func decode(_ text: String) -> [UInt8]? { unsafe decode(text.utf8.span.bytes) }

  /// Decodes into memory that has the right size, and says whether the input is strict base64url.
  private static func decode(_ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer) -> Bool {
    // Only what a character outside the alphabet stands for has its highest byte set; it survives every `|`, so one test at
    // the end suffices.
    var seen: UInt32 = 0
    var position = 0, written = 0
    unsafe shares.withUnsafeBufferPointer { shares in
      while position &+ 4 <= input.count {
        let bytes =
          unsafe shares[Int(input[position])] | shares[256 &+ Int(input[position &+ 1])]
          | shares[512 &+ Int(input[position &+ 2])] | shares[768 &+ Int(input[position &+ 3])]
        seen |= bytes
        unsafe output[written] = UInt8(truncatingIfNeeded: bytes)
        unsafe output[written &+ 1] = UInt8(truncatingIfNeeded: bytes >> 8)
        unsafe output[written &+ 2] = UInt8(truncatingIfNeeded: bytes >> 16)
        position &+= 4
        written &+= 3
      }
    }
    let rest = input.count &- position
    guard rest > 0 else { return seen < 1 << 24 }
    var bytes = unsafe shares[Int(input[position])] | shares[256 + Int(input[position &+ 1])]
    if rest == 3 { bytes |= unsafe shares[512 + Int(input[position &+ 2])] }
    unsafe output[written] = UInt8(truncatingIfNeeded: bytes)
    if rest == 3 { unsafe output[written &+ 1] = UInt8(truncatingIfNeeded: bytes >> 8) }
    // Beyond whole bytes are the unused bits, and what a character outside the alphabet has set.
    return seen < 1 << 24 && bytes >> (rest == 3 ? 16 : 8) == 0
  }

  /// What each character adds to the three bytes of its group, the first byte lowest, at each of its four places.
  private static let shares: [UInt32] = (0..<4).flatMap { place in
    (0..<256).map { character in
      let value = UInt32(sextets[character])
      if value == 0xff { return 0xff00_0000 }
      return switch place {
      case 0: value << 2
      case 1: value >> 4 | (value & 15) << 12
      case 2: (value >> 2) << 8 | (value & 3) << 22
      default: value << 16
      }
    }
  }
}

extension Base64URL {
  /// The text form of `bytes`.
  public static func encode(_ bytes: RawSpan) -> String {
    unsafe String(unsafeUninitializedCapacity: (bytes.byteCount * 4 + 2) / 3) { buffer in
      unsafe bytes.withUnsafeBytes { input in
        unsafe alphabet.withUnsafeBufferPointer { alphabet in unsafe encode(input, alphabet, buffer) }
      }
    }
  }

  /// Appends the text form of `bytes` to `text`.
  public static func append(_ bytes: RawSpan, to text: inout [UInt8]) {
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: (bytes.byteCount * 4 + 2) / 3) { buffer in
      let count = unsafe bytes.withUnsafeBytes { input in
        unsafe alphabet.withUnsafeBufferPointer { alphabet in unsafe encode(input, alphabet, buffer) }
      }
      unsafe text.append(contentsOf: buffer[..<count])
    }
  }

  /// Writes the text form of `input`, and returns how long it is.
  private static func encode(
    _ input: UnsafeRawBufferPointer, _ alphabet: UnsafeBufferPointer<UInt8>, _ output: UnsafeMutableBufferPointer<UInt8>
  ) -> Int {
    var position = 0, written = 0
    while position &+ 3 <= input.count {
      let bits =
        unsafe Int(input[position]) << 16 | Int(input[position &+ 1]) << 8 | Int(input[position &+ 2])
      unsafe output[written] = alphabet[bits >> 18]
      unsafe output[written &+ 1] = alphabet[bits >> 12 & 63]
      unsafe output[written &+ 2] = alphabet[bits >> 6 & 63]
      unsafe output[written &+ 3] = alphabet[bits & 63]
      position &+= 3
      written &+= 4
    }
    let rest = input.count &- position
    guard rest > 0 else { return written }
    let bits = unsafe Int(input[position]) << 16 | (rest == 2 ? Int(input[position &+ 1]) << 8 : 0)
    for index in 0...rest { unsafe output[written &+ index] = alphabet[bits >> (18 &- 6 &* index) & 63] }
    return written &+ rest &+ 1
  }

  /// The text form of `bytes`.
  public static func encode(_ bytes: [UInt8]) -> String { unsafe encode(bytes.span.bytes) }
}

private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

/// The value of each character; `xx` for those outside the alphabet.
private let sextets: InlineArray<256, UInt8> = {
  let xx: UInt8 = 0xff
  return [
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, 62, xx, xx,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, xx, xx, xx, xx, xx, xx,
    xx, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, xx, xx, xx, xx, 63,
    xx, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
    xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx, xx,
  ]
}()
