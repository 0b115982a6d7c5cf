import JSON

/// A JSON object that is being written: the members keep their order, and their values are JSON already.
struct Members: Sendable {
  private var list: [(name: String, json: String)] = []

  init(_ members: KeyValuePairs<String, String>) { list = members.map { (name: $0.key, json: $0.value) } }

  /// The name of the first member.
  var firstName: String? { list.first?.name }

  /// The value of a member. Setting replaces it in its place, adds it as the last, or with nil takes it out.
  subscript(name: String) -> String? {
    get { list.first { $0.name == name }?.json }
    set {
      let index = list.firstIndex { $0.name == name }
      switch (index, newValue) {
      case (let index?, let json?): list[index].json = json
      case (let index?, nil): list.remove(at: index)
      case (nil, let json?): list.append((name, json))
      case (nil, nil): break
      }
    }
  }

  /// Adds a member, whether there is one of that name or not.
  mutating func repeatMember(_ name: String, _ json: String) { list.append((name, json)) }

  /// The object without any blank, as Apple writes it.
  var json: String { "{" + list.map { "\(quoted($0.name)):\($0.json)" }.joined(separator: ",") + "}" }
}

/// The text as a JSON string.
func quoted(_ text: String) -> String { String(decoding: JSONValue.string(text).bytes, as: UTF8.self) }
