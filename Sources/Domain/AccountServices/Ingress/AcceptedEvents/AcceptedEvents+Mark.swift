package import AccountEvents
import Cryptography

extension AcceptedEvents {
  /// What an accepted event is known by: the first half of a SHA-256 of its topic, team, audience and id. An event that
  /// went into quarantine is another one than the same event on its own topic, and so is one of another team or app.
  package struct Mark: Sendable, Hashable {
    let high: UInt64
    let low: UInt64

    /// The mark of no event.
    static let none = Mark(high: 0, low: 0)

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// The mark of an event on a topic.
    package init(of id: EventID, on topic: Topic, team: TeamID, audience: ClientID) {
      self.init(topic, team.text.utf8, audience.text.utf8, id.text.utf8)
    }

    /// The mark of the event that has these headers; nil where it is none.
    init?(of headers: [EventRecord.Header], on topic: Topic) {
      func value(_ name: String) -> [UInt8]? { headers.first { $0.name == name }?.value }
      guard let id = value("ce_id"), let team = value("ce_team"), let audience = value("ce_audience") else {
        return nil
      }
      self.init(topic, team, audience, id)
    }

    private init(
      _ topic: Topic, _ team: some Collection<UInt8>, _ audience: some Collection<UInt8>, _ id: some Collection<UInt8>
    ) {
      // None of the four holds a line break. Nearly all fit.
      var text: [UInt8] = []
      text.reserveCapacity(192)
      text.append(contentsOf: topic.name.utf8)
      func append(_ part: some Collection<UInt8>) {
        text.append(UInt8(ascii: "\n"))
        text.append(contentsOf: part)
      }
      append(team)
      append(audience)
      append(id)
      let digest = SHA256.digest(of: text).bytes
      func half(_ start: Int) -> UInt64 {
        var half: UInt64 = 0
        for place in start..<start + 8 { half = half << 8 | UInt64(digest[place]) }
        return half
      }
      (high, low) = (half(0), half(8))
    }
  }
}
