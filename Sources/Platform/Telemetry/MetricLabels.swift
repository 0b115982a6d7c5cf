/// The labels of a metric, in the order in which they were given.
struct MetricLabels: Sendable, Equatable {
  let names: [String]
  private let values: [String]

  init(_ labels: KeyValuePairs<String, String>) {
    names = labels.map(\.key)
    values = labels.map(\.value)
    precondition(names.allSatisfy { Self.isName($0, colons: false) }, "\(names): not names of labels")
    precondition(Set(names).count == names.count, "\(names): one label twice")
  }

  func text(adding extra: (name: String, value: String)? = nil) -> String {
    var pairs = zip(names, values).map { name, value in
      "\(name)=\"\(value.escaped(["\\": "\\\\", "\n": "\\n", "\"": "\\\""]))\""
    }
    if let extra { pairs.append("\(extra.name)=\"\(extra.value)\"") }
    return pairs.isEmpty ? "" : "{" + pairs.joined(separator: ",") + "}"
  }

  /// A name as Prometheus wants it; two leading underscores are Prometheus' own.
  static func isName(_ text: String, colons: Bool) -> Bool {
    guard let first = text.utf8.first, !first.isDigit, !text.hasPrefix("__") else { return false }
    return text.utf8.allSatisfy { byte in
      byte.isLowerCase || byte.isUpperCase || byte.isDigit || byte == UInt8(ascii: "_")
        || colons && byte == UInt8(ascii: ":")
    }
  }
}

extension String {
  func escaped(_ replacements: [Unicode.Scalar: String]) -> String {
    unicodeScalars.reduce(into: "") { text, scalar in text += replacements[scalar] ?? String(scalar) }
  }
}
