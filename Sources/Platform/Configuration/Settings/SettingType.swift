/// What the values of a setting are: how they are read, shown, and explained to a person.
public struct SettingType<Value: Sendable>: Sendable {
  /// For the table of settings: `duration, 1s to 5m`.
  public let name: String
  /// For a fault, after "expected": `a duration from 1s to 5m, such as 250ms, 5s or 60d`.
  public let expectation: String
  /// Stands in for a faulty value, so that reading goes on and finds the other faults; no program ever sees it.
  let standIn: Value
  let isSecret: Bool
  let parse: @Sendable (SettingInput, inout [String]) throws(Misfit) -> Value
  let show: @Sendable (Value) -> String

  init(
    _ name: String, expected expectation: String, standIn: Value, isSecret: Bool = false,
    show: @escaping @Sendable (Value) -> String,
    parse: @escaping @Sendable (SettingInput, inout [String]) throws(Misfit) -> Value
  ) {
    (self.name, self.expectation, self.standIn, self.isSecret) = (name, expectation, standIn, isSecret)
    (self.show, self.parse) = (show, parse)
  }

  /// Whether the text is a value of it.
  func takes(_ text: String) -> Bool {
    var ignored: [String] = []
    do {
      _ = try parse(SettingInput(text: text, origin: .preset), &ignored)
      return true
    } catch {
      return false
    }
  }

  /// A type of somebody's own. `parse` returns nil for what is not a value of it; `standIn` is any value: it stands
  /// in for a faulty one while the other faults are looked for, and no program ever sees it.
  public init(
    _ name: String, expected expectation: String, standIn: Value, show: @escaping @Sendable (Value) -> String,
    parse: @escaping @Sendable (String) -> Value?
  ) {
    self.init(name, expected: expectation, standIn: standIn, show: show) {
      input, _ throws(Misfit) in
      guard let value = parse(try input.text()) else { throw input.misfit() }
      return value
    }
  }
}

extension SettingType {
  /// Several values: a YAML list, or separated by commas in a variable or on the command line.
  public static func list<Element>(
    of element: SettingType<Element>, count: ClosedRange<Int>
  ) -> SettingType where Value == [Element] {
    let bounds = "\(count.lowerBound) to \(count.upperBound)"
    return SettingType(
      "list of \(element.name), \(bounds) of them",
      expected: "a list of \(bounds) items, each \(element.expectation)", standIn: [],
      show: { $0.map(element.show).joined(separator: ", ") },
      parse: { input, warnings throws(Misfit) in
        let items = try input.items()
        guard count.contains(items.count) else { throw input.misfit() }
        var values: [Element] = []
        for item in items { values.append(try element.parse(item, &warnings)) }
        return values
      })
  }

  /// One of the cases of a closed list, by its raw value.
  public static func choice(_ type: Value.Type) -> SettingType
  where Value: CaseIterable & RawRepresentable<String> {
    let names = Value.allCases.map(\.rawValue)
    guard let first = Value.allCases.first else { preconditionFailure("\(type) has no cases") }
    let text = names.count == 1 ? names[0] : names.dropLast().joined(separator: ", ") + " or " + names[names.count - 1]
    return SettingType(text, expected: text, standIn: first, show: \.rawValue) { Value(rawValue: $0) }
  }
}
