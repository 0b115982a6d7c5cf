extension [[UInt8]] {
  /// The parts one behind the other, each behind its length.
  var packed: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(reduce(0) { $0 + 4 + $1.count })
    for part in self {
      let count = UInt32(part.count)
      for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
      bytes += part
    }
    return bytes
  }

  /// The parts of what was packed; nil where it is something else.
  init?(packed bytes: [UInt8]) {
    self = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count >= 4 else { return nil }
      let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      guard rest.count >= count else { return nil }
      append([UInt8](rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
  }
}
