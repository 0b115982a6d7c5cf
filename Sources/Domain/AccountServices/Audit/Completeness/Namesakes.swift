import AccountEvents
import Cryptography

/// What stands for something in large tables: 16 bytes of its SHA-256, whatever its length.
struct ShortDigest: Sendable, Hashable {
  private let (high, low): (UInt64, UInt64)

  init(_ digest: SHA256Digest) {
    func number(_ slice: ArraySlice<UInt8>) -> UInt64 { slice.reduce(0) { $0 << 8 | UInt64($1) } }
    (high, low) = (number(digest.bytes[..<8]), number(digest.bytes[8..<16]))
  }

  init(of bytes: [UInt8]) { self.init(SHA256.digest(of: bytes)) }

  /// An event's, by its id.
  init(_ event: EventID) { self.init(of: Array(event.text.utf8)) }
}

/// Values by the event that they are about. Nearly always an event has one: two accounts' events can have one id, though
/// Apple gives none twice.
struct Namesakes<Value: Sendable>: Sendable {
  private var first: [ShortDigest: Value] = [:]
  private var more: [ShortDigest: [Value]] = [:]

  /// How many values there are.
  var count: Int { first.count + more.values.reduce(0) { $0 + $1.count } }

  /// All values, in no order.
  var all: some Sequence<Value> { Array(first.values) + more.values.flatMap { $0 } }

  /// The values of an event.
  subscript(event: ShortDigest) -> [Value] {
    get {
      guard let value = first[event] else { return [] }
      return more.isEmpty ? [value] : [value] + (more[event] ?? [])
    }
    set {
      first[event] = newValue.first
      if newValue.count > 1 { more[event] = Array(newValue.dropFirst()) } else if !more.isEmpty { more[event] = nil }
    }
  }
}
