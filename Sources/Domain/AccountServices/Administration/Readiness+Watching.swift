import EventLoop
package import Telemetry

extension Readiness {
  /// How often a part is asked whether it is still ready, and whether it is ready by now.
  private static let pulse = (ready: Duration.seconds(5), notReady: Duration.milliseconds(250))

  /// Asks a part again and again how it is, and logs what changes; until the task is cancelled or the service ends.
  package func watch(_ part: Part, _ logger: Logger, _ ask: @Loop () async -> State) async {
    while true {
      let state = await ask()
      if isFrozen { return }
      note(part, state, logger)
      do {
        try await Loop.sleep(for: state == .ready ? Self.pulse.ready : Self.pulse.notReady)
      } catch {
        return  // the service ends
      }
    }
  }

  /// Takes over how a part is, and logs it where that is another state; nothing once the service ends.
  package func note(_ part: Part, _ state: State, _ logger: Logger) {
    let last = self[part]
    guard !isFrozen, last != state else { return }
    self[part] = state
    let metadata: LogMetadata = ["part": .string(part.rawValue), "state": .describing(state)]
    switch (last, state) {
    case (_, .ready): logger.info("ready", ["part": .string(part.rawValue)])
    case (.ready, _): logger.warning("not ready any more", metadata)
    default: logger.info("not ready yet", metadata)
    }
  }
}
