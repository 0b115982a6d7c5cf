/// A piece of a page. Text that is interpolated is escaped, other pieces are not: nothing of a person's, of Apple's or of a
/// service's becomes an element, an attribute or a script.
struct HTML: ExpressibleByStringInterpolation, Sendable {
  /// As it stands in the page.
  let text: String

  /// What a person wrote who wrote the program.
  init(stringLiteral value: String) { text = value }

  /// Pieces of the program, and what is between them.
  init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

  /// Tells text from HTML by its type.
  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

    mutating func appendLiteral(_ literal: String) { text += literal }

    mutating func appendInterpolation(_ html: HTML) { text += html.text }

    mutating func appendInterpolation(_ pieces: [HTML]) { text += pieces.map(\.text).joined(separator: "\n") }

    mutating func appendInterpolation(_ value: String) {
      for scalar in value.unicodeScalars {
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
  }
}
