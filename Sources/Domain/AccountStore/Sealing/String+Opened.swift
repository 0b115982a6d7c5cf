extension String {
  /// The text of bytes that were opened; nil where they are no UTF-8. The standard library's initializer, which takes any
  /// bytes in any encoding, looks up their types at run time, which takes longer than all else.
  init?(opened bytes: [UInt8]) {
    guard let text = try? UTF8Span(validating: bytes.span) else { return nil }
    self.init(copying: text)
  }
}
