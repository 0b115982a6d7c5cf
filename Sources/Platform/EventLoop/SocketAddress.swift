package import Glibc

/// An IP address and a port: `127.0.0.1:8443`, `[::1]:8443`.
public struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
  /// The sixteen bytes of an IPv6 address; an IPv4 address stands in its mapped form (`::ffff:a.b.c.d`).
  public let bytes: InlineAddress
  /// 0 lets the system choose a free one.
  public var port: UInt16

  /// An address as 16 bytes in two halves, in network order read as big-endian numbers: small and hashable.
  public struct InlineAddress: Sendable, Hashable {
    /// The first eight bytes.
    public let high: UInt64
    /// The last eight bytes.
    public let low: UInt64

    /// An address of the two halves.
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
  }

  /// Whether it is an IPv4 address.
  public var isIPv4: Bool { bytes.high == 0 && bytes.low >> 32 == 0xffff }

  /// Whether only this machine can reach it.
  public var isLoopback: Bool {
    isIPv4 ? (bytes.low >> 24) & 0xff == 127 : bytes.high == 0 && bytes.low == 1
  }

  /// Every IPv4 address of this machine, to listen on.
  public static func any(port: UInt16) -> SocketAddress {
    SocketAddress(bytes: InlineAddress(high: 0, low: 0xffff_0000_0000), port: port)
  }

  /// Loopback over IPv4 with the given port.
  public static func loopback(port: UInt16) -> SocketAddress {
    SocketAddress(bytes: InlineAddress(high: 0, low: 0xffff_7f00_0001), port: port)
  }

  init(bytes: InlineAddress, port: UInt16) { (self.bytes, self.port) = (bytes, port) }

  /// The address whose 4 or 16 bytes, as networks order them, these are.
  package init(networkBytes: [UInt8], port: UInt16) {
    precondition(networkBytes.count == 4 || networkBytes.count == 16, "neither IPv4 nor IPv6")
    let mapped = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]
    let bytes = networkBytes.count == 16 ? networkBytes : mapped + networkBytes
    func half(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(bytes: InlineAddress(high: half(bytes[..<8]), low: half(bytes[8...])), port: port)
  }

  /// Reads `a.b.c.d:port` or `[ipv6]:port`; nil if it is neither. Names are not looked up.
  public init?(_ text: String) {
    // The digits by hand, because `UInt16` takes "+80" too; and no NUL, at which inet_pton would stop reading.
    guard let colon = text.lastIndex(of: ":"), !text.utf8.contains(0) else { return nil }
    let digits = text[text.index(after: colon)...]
    guard digits.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }), let port = UInt16(digits) else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
      var address = in6_addr()
      guard unsafe inet_pton(AF_INET6, String(host), &address) == 1 else { return nil }
      self.init(address, port: port)
    } else {
      var address = in_addr()
      guard unsafe inet_pton(AF_INET, String(host), &address) == 1 else { return nil }
      self.init(address, port: port)
    }
  }

  private init(_ address: in_addr, port: UInt16) {
    let number = UInt64(UInt32(bigEndian: address.s_addr))
    self.init(bytes: InlineAddress(high: 0, low: 0xffff_0000_0000 | number), port: port)
  }

  private init(_ address: in6_addr, port: UInt16) {
    let (high, low) = unsafe withUnsafeBytes(of: address) { raw in
      unsafe (raw.loadUnaligned(as: UInt64.self), raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    self.init(bytes: InlineAddress(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low)), port: port)
  }

  /// Takes over what accept(2) or getsockname(2) filled in; nil for another family.
  package init?(_ storage: sockaddr_storage) {
    let address: SocketAddress? = unsafe withUnsafeBytes(of: storage) { raw -> SocketAddress? in
      switch CInt(storage.ss_family) {
      case AF_INET:
        let ip = unsafe raw.loadUnaligned(as: sockaddr_in.self)
        return SocketAddress(ip.sin_addr, port: UInt16(bigEndian: ip.sin_port))
      case AF_INET6:
        let ip = unsafe raw.loadUnaligned(as: sockaddr_in6.self)
        return SocketAddress(ip.sin6_addr, port: UInt16(bigEndian: ip.sin6_port))
      default: return nil
      }
    }
    guard let address else { return nil }
    self = address
  }

  /// Calls `body` with the address in the form that bind(2) and connect(2) want.
  package func withSystemAddress<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
    if isIPv4 {
      var ip = sockaddr_in()
      ip.sin_family = sa_family_t(AF_INET)
      ip.sin_port = port.bigEndian
      ip.sin_addr.s_addr = UInt32(truncatingIfNeeded: bytes.low).bigEndian
      return unsafe withUnsafeBytes(of: &ip) { raw in
        guard let base = raw.baseAddress else { preconditionFailure("a struct has an address") }
        return unsafe body(base.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
      }
    }
    var ip = sockaddr_in6()
    ip.sin6_family = sa_family_t(AF_INET6)
    ip.sin6_port = port.bigEndian
    unsafe withUnsafeMutableBytes(of: &ip.sin6_addr) { raw in
      unsafe raw.storeBytes(of: bytes.high.bigEndian, as: UInt64.self)
      unsafe raw.storeBytes(of: bytes.low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    return unsafe withUnsafeBytes(of: &ip) { raw in
      guard let base = raw.baseAddress else { preconditionFailure("a struct has an address") }
      return unsafe body(base.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
    }
  }

  /// The address without its port, as logs and limits name it.
  public var host: String {
    if isIPv4 {
      let low = bytes.low
      return "\(low >> 24 & 0xff).\(low >> 16 & 0xff).\(low >> 8 & 0xff).\(low & 0xff)"
    }
    var address = in6_addr()
    unsafe withUnsafeMutableBytes(of: &address) { raw in
      unsafe raw.storeBytes(of: bytes.high.bigEndian, as: UInt64.self)
      unsafe raw.storeBytes(of: bytes.low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    var text = [CChar](repeating: 0, count: 64)
    _ = unsafe inet_ntop(AF_INET6, &address, &text, 64)
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The address as configuration files write it.
  public var description: String { isIPv4 ? "\(host):\(port)" : "[\(host)]:\(port)" }
}
