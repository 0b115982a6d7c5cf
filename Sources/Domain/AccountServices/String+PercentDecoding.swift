extension String {
  /// Undoes percent-encoding; nil where it is malformed or what comes out is not visible ASCII.
  init?(percentDecoding text: Substring) {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        guard rest.count >= 2, let value = UInt8(String(Substring(rest.prefix(2))), radix: 16), 0x21...0x7e ~= value,
          rest.prefix(2).allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") })
        else { return nil }
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    self.init(decoding: bytes, as: UTF8.self)
  }
}
