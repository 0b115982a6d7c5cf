/// Text of an HTML page. What stands in it from outside is escaped where it is put in.
package struct Markup: ExpressibleByStringInterpolation, Sendable {
  /// The text as it stands in the page.
  package let text: String

  /// What the program says itself.
  package init(stringLiteral text: String) { self.text = text }

  /// What the program says, with what stands between it.
  package init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

  /// Pieces, one behind the other.
  package init(_ parts: some Sequence<Markup>) { text = parts.map(\.text).joined() }

  /// A count, with a comma at every third digit: `1,102,603`.
  static func grouped(_ number: some BinaryInteger) -> String {
    let digits = String(number)
    return digits.enumerated().map { place, digit in
      place > 0 && (digits.count - place).isMultiple(of: 3) && digit.isNumber ? ",\(digit)" : "\(digit)"
    }.joined()
  }

  /// Escapes what is text, and takes over what is markup.
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    /// Nothing yet.
    package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

    /// What the program says.
    package mutating func appendLiteral(_ literal: String) { text += literal }

    /// Markup as it is.
    package mutating func appendInterpolation(_ markup: Markup) { text += markup.text }

    /// Pieces, each on a line of its own.
    package mutating func appendInterpolation(_ pieces: [Markup]) {
      text += pieces.map(\.text).joined(separator: "\n")
    }

    /// A number, with a comma at every third digit.
    package mutating func appendInterpolation(_ number: some BinaryInteger) { text += Markup.grouped(number) }

    /// Text, escaped. Also makes what could turn a line around visible: reports quote what people wrote.
    package mutating func appendInterpolation(_ words: String) {
      let lines = words.split(separator: "\n", omittingEmptySubsequences: false)
      for scalar in lines.map({ String(printable: $0) }).joined(separator: "\n").unicodeScalars {
        switch scalar {
        case "&": text += "&amp;"
        case "<": text += "&lt;"
        case ">": text += "&gt;"
        case "\"": text += "&quot;"
        case "'": text += "&#39;"
        default: text.unicodeScalars.append(scalar)
        }
      }
    }

    mutating func appendInterpolation(raw markup: String) { text += markup }
  }
}
