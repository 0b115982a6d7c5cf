/// A value as it was written, before its type reads it.
struct SettingInput {
  let node: YAMLNode
  let origin: SettingOrigin
  /// What a relative path starts from, with its final slash; empty for the working directory.
  var directory = ""
  /// Whether the text is the secret, not the path of the file that holds it: so in a variable.
  var isSecretItself = false

  init(node: YAMLNode, origin: SettingOrigin, directory: String = "") {
    (self.node, self.origin, self.directory) = (node, origin, directory)
  }

  init(text: String, origin: SettingOrigin, isSecretItself: Bool = false) {
    node = YAMLNode(line: 0, content: .scalar(text, isQuoted: true))
    (self.origin, self.isSecretItself) = (origin, isSecretItself)
  }

  var isFromFile: Bool { if case .file = origin { true } else { false } }

  /// The text, where the type wants a single value.
  func text() throws(Misfit) -> String {
    guard case .scalar(let text, _) = node.content, !node.isNull else { throw misfit() }
    // Variables are not UTF-8 by nature: what could not be decoded must not pass as something else.
    guard !text.unicodeScalars.contains("\u{fffd}") else { throw misfit("it is not UTF-8") }
    return text
  }

  /// That the value is not what was expected, in words of its own or by showing what was found.
  func misfit(_ reason: String? = nil) -> Misfit {
    let found: String =
      switch node.content {
      case .scalar where node.isNull: "nothing"
      case .scalar(let text, _): text.quoted
      case .sequence: "a list"
      case .mapping: "a group of settings"
      }
    return Misfit(line: isFromFile ? node.line : nil, found: found, reason: reason)
  }

  /// Each item of a list; from a variable or the command line they are separated by commas.
  func items() throws(Misfit) -> [SettingInput] {
    switch node.content {
    case .sequence(let nodes): nodes.map { SettingInput(node: $0, origin: origin, directory: directory) }
    case .scalar(let text, _) where !isFromFile:
      text.split(separator: ",", omittingEmptySubsequences: false).map { part in
        SettingInput(text: String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()), origin: origin)
      }
    case .scalar, .mapping: throw misfit()
    }
  }
}

/// Why a value is not of its type.
struct Misfit: Error {
  /// The line of the very value, where it is one of many.
  let line: Int?
  let found: String
  /// Instead of "expected …, found …".
  let reason: String?
}
