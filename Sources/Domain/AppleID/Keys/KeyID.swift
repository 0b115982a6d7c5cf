/// The name of one of Apple's signing keys (`kid`), as Apple says it or as a token claims it: opaque, and short.
package struct KeyID: Sendable, Hashable, CustomStringConvertible {
  /// The name, such as `fh6Bs8C`.
  package let text: String

  /// Nil unless `text` is 1 to 64 visible ASCII characters; Apple's have 6 to 10.
  package init?(_ text: String) {
    guard 1...64 ~= text.utf8.count, text.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) else { return nil }
    self.text = text
  }

  /// The name. It comes from outside when a token claims it, but it is bounded and visible ASCII.
  package var description: String { text }
}
