/// One counter for each case of a closed list, told apart by one label: refusals by reason.
///
/// All of them exist from the start, so that a dashboard sees a zero before it sees the first one.
public struct CounterFamily<Key: CaseIterable & Hashable & RawRepresentable<String> & Sendable>: Sendable {
  private let counters: [Key: Counter]

  init(_ make: (Key) -> Counter) {
    counters = Dictionary(uniqueKeysWithValues: Key.allCases.map { ($0, make($0)) })
  }

  /// The counter of a case.
  public subscript(key: Key) -> Counter {
    guard let counter = counters[key] else { preconditionFailure("\(key) is missing from its own allCases") }
    return counter
  }
}
