/// Headers as one blob: each name and each value after its length in four bytes, the most significant first.
extension [EventRecord.Header] {
  /// How many bytes `packed` has.
  package var packedSize: Int { reduce(0) { $0 + 8 + $1.name.utf8.count + $1.value.count } }

  /// The headers as one blob.
  package var packed: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(packedSize)
    func append(_ part: some Collection<UInt8>) {
      let count = UInt32(part.count)
      for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
      bytes.append(contentsOf: part)
    }
    for header in self {
      append(header.name.utf8)
      append(header.value)
    }
    return bytes
  }

  /// The headers in a blob; nil where it is not of this form.
  package init?(packed bytes: [UInt8]) {
    self = []
    var rest = bytes[...]
    func next() -> ArraySlice<UInt8>? {
      guard rest.count >= 4 else { return nil }
      let count = Int(rest.prefix(4).reduce(0 as UInt32) { $0 << 8 | UInt32($1) })
      rest = rest.dropFirst(4)
      guard rest.count >= count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }
    while !rest.isEmpty {
      guard let name = next().flatMap({ String(validating: $0, as: UTF8.self) }), let value = next() else {
        return nil
      }
      append(EventRecord.Header(name: name, value: [UInt8](value)))
    }
  }
}
