extension String {
  /// Text from outside, for a terminal: what could command it, or turn what stands there around, is written as `\u{1b}`.
  package init(printable text: some StringProtocol) {
    self = ""
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
        self += "\\u{\(String(scalar.value, radix: 16))}"
      default: unicodeScalars.append(scalar)
      }
    }
  }

  /// The same of bytes, which are to be UTF-8.
  package init(printable bytes: [UInt8]) { self.init(printable: String(decoding: bytes, as: UTF8.self)) }
}
