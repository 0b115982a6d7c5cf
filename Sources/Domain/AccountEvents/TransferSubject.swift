/// What stands for a person while an app changes teams, in place of the subjects of both: opaque, and personal data.
package struct TransferSubject: Sendable, Hashable, CustomStringConvertible {
  /// The value of `transfer_sub`, such as `001876.r` and 32 hexadecimal digits.
  package let text: String

  /// Nil unless `text` is 1 to 255 visible ASCII characters.
  package init?(_ text: String) {
    guard 1...255 ~= text.utf8.count, text.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) else { return nil }
    self.text = text
  }

  /// Says that there is one, and not which.
  package var description: String { "«transfer subject»" }
}
