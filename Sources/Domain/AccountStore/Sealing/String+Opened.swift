extension String {
  /// The text of bytes that were opened; nil where they are not UTF-8. The standard library's initializer, which takes any
  /// encoding, looks up generic types at run time, which takes longer than the rest.
  init?(opened bytes: [UInt8]) {
    guard let text = try? UTF8Span(validating: bytes.span) else { return nil }
    self.init(copying: text)
  }
}
