package import AccountEvents

/// What was found of a person in one of the places that the programs write to.
package struct PersonTrace: Sendable, Hashable {
  /// How long it stays.
  package enum Stay: Sendable, Hashable {
    /// Nothing was found.
    case nothing
    /// What was found is not personal: it stays.
    case impersonal
    /// It goes by itself; until when at the latest, where that is known.
    case passing(until: Timestamp?)
    /// It stays until somebody does something about it: the words say what.
    case staying(String)
    /// The place could not be asked: the words say why.
    case unknown(String)
  }

  /// The place: a topic's name, or a word for what is none.
  package let place: String
  /// What was found, in words without personal data.
  package let found: String
  /// How long it stays.
  package let stay: Stay

  /// A trace from its parts.
  package init(_ place: String, _ found: String, _ stay: Stay) {
    (self.place, self.found, self.stay) = (place, found, stay)
  }

  /// A place where nothing was found.
  package static func nothing(_ place: String) -> PersonTrace { PersonTrace(place, "nothing", .nothing) }
}
