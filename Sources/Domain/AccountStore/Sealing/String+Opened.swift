extension String {
  /// The text of bytes that were opened; nil where they are not UTF-8. The standard library's initializer, which takes any
  /// encoding, looks up generic types at run time, which takes longer than the rest.
  init?(opened bytes: [UInt8]) {
    do throws(UTF8.ValidationError) {
      self.init(copying: try UTF8Span(validating: bytes.span))
    } catch {
      return nil  // where in the bytes it is wrong says nothing to whoever opened them
    }
  }
}
