import EventLoop

/// What was asked about users who move.
@Loop final class Questions {
  private var asked = 0
  private var people: Set<Int> = []
  private var first, last: MonotonicTime?

  func reset() { (asked, people, first, last) = (0, [], nil, nil) }

  /// How often, about how many, and how long it was from the first to the last.
  var counts: String {
    let time = first.flatMap { first in last.map { $0 - first } } ?? .zero
    return #"{"asked":\#(asked),"people":\#(people.count),"seconds":\#(time / .seconds(1))}"#
  }

  /// An identifier for a subject, or a subject for an identifier: the 32 digits that name the person, backwards.
  func answer(_ form: String) -> String? {
    for field in form.split(separator: "&") {
      let parts = field.split(separator: "=")
      guard parts.count == 2, parts[0] == "sub" || parts[0] == "transfer_sub" else { continue }
      asked += 1
      people.insert(parts[1].hashValue)
      last = .now
      first = first ?? last
      let isSubject = parts[0] == "sub"
      let digits = String(parts[1].dropFirst(isSubject ? 7 : 8).prefix(32).reversed())
      if isSubject { return #"{"transfer_sub":"001876.r\#(digits)"}"# }
      let address = "\(digits.prefix(16))@privaterelay.appleid.com"
      return #"{"sub":"000931.\#(digits).0815","email":"\#(address)","is_private_email":"true"}"#
    }
    return nil
  }
}
