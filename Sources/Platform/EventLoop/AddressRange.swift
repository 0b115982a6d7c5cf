/// A range of IP addresses in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
public struct AddressRange: Sendable, Hashable, CustomStringConvertible {
  private let address: SocketAddress
  /// How many of the 128 bits, of which an IPv4 address has the last 32, are the same for all.
  private let bits: Int

  /// Reads `address/length` or `address`; nil if it is neither, or if the address has bits behind its prefix: then one of
  /// the two is a mistake.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    let host = parts[0]
    guard let address = SocketAddress(host.contains(":") ? "[\(host)]:0" : "\(host):0") else { return nil }
    let width = address.isIPv4 && !host.contains(":") ? 32 : 128
    var length = width
    if parts.count == 2 {
      // Only the one way to write it: neither +8 nor 08.
      guard let number = Int(parts[1]), "\(number)" == parts[1], 0...width ~= number else { return nil }
      length = number
    }
    self.address = address
    bits = 128 - width + length
    guard Self.masked(address.bytes, bits) == address.bytes else { return nil }
  }

  /// Loopback over IPv4.
  public static let loopback = AddressRange(address: .loopback(port: 0), bits: 128)

  private init(address: SocketAddress, bits: Int) { (self.address, self.bits) = (address, bits) }

  /// Whether the range has this address; the port does not matter.
  public func contains(_ other: SocketAddress) -> Bool { Self.masked(other.bytes, bits) == address.bytes }

  /// Whether every address of its kind is in it.
  public var isEverything: Bool { bits == 0 || address.isIPv4 && bits == 96 }

  /// The range as configuration files write it.
  public var description: String { "\(address.host)/\(address.isIPv4 ? bits - 96 : bits)" }

  private static func masked(_ bytes: SocketAddress.InlineAddress, _ bits: Int) -> SocketAddress.InlineAddress {
    func mask(_ count: Int) -> UInt64 { count <= 0 ? 0 : ~0 << UInt64(64 - min(count, 64)) }
    return SocketAddress.InlineAddress(high: bytes.high & mask(bits), low: bytes.low & mask(bits - 64))
  }
}
