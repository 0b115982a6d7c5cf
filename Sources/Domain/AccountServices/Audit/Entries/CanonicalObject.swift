import AccountEvents
import Cryptography
import JSON

/// A JSON object in canonical form (RFC 8785), member by member: whoever adds them does so in the order of their names.
struct CanonicalObject {
  /// The object so far.
  private(set) var bytes: [UInt8] = [UInt8(ascii: "{")]

  init() { bytes.reserveCapacity(640) }

  /// Ends the object.
  consuming func finish() -> [UInt8] {
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// A text.
  mutating func add(_ name: StaticString, _ text: String?) {
    guard let text else { return }
    begin(name)
    JSON.append(text, to: &bytes)
  }

  /// A number. One that JSON does not carry exactly, which no broker counts up to, becomes the nearest that it does.
  mutating func add(_ name: StaticString, _ number: Int64?) {
    guard let number else { return }
    begin(name)
    JSON.append(min(max(number, -Self.largest), Self.largest), to: &bytes)
  }

  private static let largest: Int64 = (1 << 53) - 1

  /// A moment, in milliseconds since 1970.
  mutating func add(_ name: StaticString, _ time: Timestamp?) { add(name, time?.milliseconds) }

  /// Bytes as hexadecimal digits.
  mutating func add(_ name: StaticString, hex digest: [UInt8]?) {
    guard let digest else { return }
    begin(name)
    bytes.append(UInt8(ascii: "\""))
    for byte in digest {
      bytes.append(Self.digit(byte >> 4))
      bytes.append(Self.digit(byte & 15))
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// A value that is in canonical form already.
  mutating func add(_ name: StaticString, canonical value: [UInt8]) {
    begin(name)
    bytes.append(contentsOf: value)
  }

  private mutating func begin(_ name: StaticString) {
    bytes.append(contentsOf: bytes.count > 1 ? [UInt8(ascii: ","), UInt8(ascii: "\"")] : [UInt8(ascii: "\"")])
    unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
  }

  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
