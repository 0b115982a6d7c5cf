/// Text that gives power to whoever has it, such as a token: it can be used, but neither printed nor logged nor dumped.
package protocol ConfidentialText: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The text itself, for the one who needs it.
  var text: String { get }
}

extension ConfidentialText {
  /// Says that there is something, and not what.
  package var description: String { "«redacted»" }
  /// The same for a debugger.
  package var debugDescription: String { description }
  /// Nothing to see for `dump` and for the interpolation of what contains it.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension String {
  /// Whether it is what a token can be: one to `limit` visible ASCII characters.
  func isToken(upTo limit: Int) -> Bool {
    1...limit ~= utf8.count && utf8.allSatisfy { 0x21...0x7e ~= $0 }
  }
}
