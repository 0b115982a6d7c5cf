extension String {
  /// The text in quotation marks, as a fault shows what it found: cut when long, control characters escaped.
  var quoted: String {
    let limit = 60
    var text = "\""
    for scalar in unicodeScalars.prefix(limit) {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: text += scalar.escaped(asASCII: true)
      default: text += scalar == "\"" ? "\\\"" : String(scalar)
      }
    }
    return unicodeScalars.count > limit ? text + "…\"" : text + "\""
  }
}
