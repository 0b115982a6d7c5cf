/// Why the simulator does not do what it was told over HTTP: what was expected instead, for the person who told it.
struct OrderRefusal: Error, Equatable {
  let expected: String
}
