package import AccountEvents
package import EventLoop

/// Looks in an ingress's memory of duplicates for events: it holds hashes of them, and nothing of a person.
package enum AcceptedTraces {
  /// Looks in the memory in the spool's `directory` for these events of a team's `audiences`, each remembered for `time`.
  /// It blocks while it reads.
  package static func search(
    _ directory: String, for events: Set<EventID>, _ team: TeamID, _ audiences: [ClientID], remembered time: Duration
  ) throws(SystemError) -> PersonTrace {
    let place = "duplicates \(directory)"
    var marks: Set<AcceptedEvents.Mark> = []
    for event in events {
      for audience in audiences {
        for topic in [Topic.accountEvents, .quarantine] {
          marks.insert(AcceptedEvents.Mark(of: event, on: topic, team: team, audience: audience))
        }
      }
    }
    let found = try MarkFile.look(into: "\(directory)/\(AcceptedEvents.fileName)").filter { marks.contains($0.mark) }
    guard let last = found.map(\.seconds).max().flatMap({ Timestamp(seconds: $0) }) else { return .nothing(place) }
    return PersonTrace(place, "\(found.count) hashes of events, remembered until \(last + time)", .impersonal)
  }
}
