import HTTPClient
import JSON

/// What somebody tells the simulator to do, as the JSON body of a POST below `/simulator/`.
///
/// - `/simulator/notify`: `{"type":"consent-revoked","user":"ada","audience":"com.example.app","to":"https://…"}`,
///   with `"faults":["expired"]`, `"copies":2` and `"attempts":5` where they are wanted.
/// - `/simulator/keys`: `{"answer":"html","delay_ms":500}`, both as they are wanted.
/// - `/simulator/keys/rotate`: `{}`.
/// - `/simulator/team`: `{"team":"A1B2C3D4E5","audiences":["com.example.app"]}`, with `"to":"https://…"` where
///   revocations are to be told, and `"redirect_uris":["https://…"]` where sign-ins in a browser end; answers with
///   `key_id` and `private_key`.
/// - `/simulator/team/withdraw-key`: `{"key_id":"ABC123DEFG"}`: nothing that the key has signed is worth anything then.
/// - `/simulator/sign-in`: `{"user":"ada","audience":"com.example.app"}`, with `"redirect_uri"` for a web app; answers
///   with `code` and `sub`.
/// - `/simulator/asked`: `{}`; answers with how often each endpoint was asked.
/// - `/simulator/transfer`: `{"audience":"com.example.app","team":"A1B2C3D4E5","target":"Z9Y8X7W6V5"}`, with
///   `"accepted_days_ago":0` once the target has accepted the app.
/// - `/simulator/populate`: `{"audience":"com.example.app"}`: whoever has the form of a subject is a user of it.
/// - `/simulator/withdraw-consent`: `{"user":"ada","audience":"com.example.app"}`: nobody is told.
/// - `/simulator/team/end-tokens`: `{}`: the access tokens of all teams are over.
/// - `/simulator/tokens`, `/simulator/revocations`, `/simulator/migrations`: `{"answer":"unavailable","delay_ms":500}`,
///   as they are wanted.
struct Order {
  private var texts: [String: String] = [:]
  private var numbers: [String: Int64] = [:]
  private var lists: [String: [String]] = [:]

  /// Takes the body apart. What a member may be is looked at when it is asked for.
  init(_ body: RawSpan) throws(OrderRefusal) {
    do throws(JSONError) {
      self = try JSONReader.read(body, JSONLimits(bytes: 65_536, depth: 4, members: 16)) { reader throws(JSONError) in
        var order = Order()
        try reader.readObject { name, value throws(JSONError) in
          switch name {
          case "type", "user", "audience", "to", "answer", "team", "target", "redirect_uri", "key_id":
            order.texts[name] = try value.readString()
          case "copies", "attempts", "delay_ms", "accepted_days_ago": order.numbers[name] = try value.readInteger()
          case "faults", "audiences", "redirect_uris":
            var list: [String] = []
            try value.readArray { element throws(JSONError) in list.append(try element.readString()) }
            order.lists[name] = list
          default: break
          }
        }
        return order
      }
    } catch {
      throw OrderRefusal(expected: "a JSON object with members of their kinds (\(error))")
    }
  }

  private init() {}

  /// The text of a member that must be there.
  func text(_ name: String) throws(OrderRefusal) -> String {
    guard let text = texts[name] else { throw OrderRefusal(expected: "\"\(name)\", a string") }
    return text
  }

  /// The text of a member; nil where it is not there.
  func textIfPresent(_ name: String) -> String? { texts[name] }

  /// The texts of a member that must be there.
  func list(_ name: String) throws(OrderRefusal) -> [String] {
    guard let list = lists[name], !list.isEmpty else { throw OrderRefusal(expected: "\"\(name)\", a list of strings") }
    return list
  }

  /// The texts of a member; none where it is not there.
  func listIfPresent(_ name: String) -> [String] { lists[name] ?? [] }

  /// The number of a member, or what holds without it.
  func number(_ name: String, _ range: ClosedRange<Int64>, default number: Int64) throws(OrderRefusal) -> Int64 {
    try numberIfPresent(name, range) ?? number
  }

  /// The number of a member; nil where it is not there.
  func numberIfPresent(_ name: String, _ range: ClosedRange<Int64>) throws(OrderRefusal) -> Int64? {
    guard let number = numbers[name] else { return nil }
    guard range.contains(number) else {
      throw OrderRefusal(expected: "\"\(name)\", a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// The member as one of a closed list; nil where it is not there.
  func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ name: String
  ) throws(OrderRefusal) -> Choice? {
    guard let text = texts[name] else { return nil }
    return try Self.choice(text, of: name)
  }

  /// The faults that the member names.
  func chosenFaults() throws(OrderRefusal) -> [Fault] {
    var chosen: [Fault] = []
    for fault in lists["faults"] ?? [] { chosen.append(try Self.choice(fault, of: "faults")) }
    return chosen
  }

  private static func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ text: String, of name: String
  ) throws(OrderRefusal) -> Choice {
    guard let choice = Choice(rawValue: text) else {
      let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
      throw OrderRefusal(expected: "\"\(name)\", of: \(names)")
    }
    return choice
  }
}
