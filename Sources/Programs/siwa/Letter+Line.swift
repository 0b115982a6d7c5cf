import AccountEvents
import AccountServices
import JSON

extension Letter {
  private typealias Column = (name: String, text: String?)

  private var columns: [Column] {
    func header(_ name: String) -> String? { self[name].map { String(printable: $0) } }
    let age = putAsideAt.map { max(0, (Timestamp.now - $0).components.seconds) }
    let first: [Column] = [
      ("letter", place.description), ("time", header("dead-letter-time") ?? putAsideAt?.description),
      ("age", age.map { "\($0)" }), ("cause", cause.map { String(printable: $0) }),
    ]
    let event: [Column] = [("type", type.map { String(printable: $0) }), ("event", header("ce_id"))]
    guard let origin else {
      return first + event
        + [("team", header("ce_team")), ("audience", header("ce_audience")), ("signed", header("ce_time"))]
    }
    return first + [("attempts", header("dead-letter-attempts"))] + event
      + [("origin", String(printable: origin.description))]
  }

  private var marks: [(name: String, isSet: Bool)] {
    origin == nil
      ? [("former-key", isFormer)]
      : [("given-up", self["dead-letter-given-up"] != nil), ("truncated", isShortened)]
  }

  /// A line without personal data.
  var line: String {
    (columns.map { $0.text ?? "?" } + marks.filter(\.isSet).map(\.name)).joined(separator: "  ")
  }

  /// The same for programs.
  var json: JSONValue {
    .object(
      columns.map { JSONValue.Member($0.name, $0.text.map { .string($0) } ?? .null) }
        + marks.map { JSONValue.Member($0.name, .boolean($0.isSet)) })
  }
}
