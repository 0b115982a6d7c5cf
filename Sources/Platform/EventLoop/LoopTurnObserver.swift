/// Learns how long each turn of the loop took: from the moment at which the kernel reported, until it is asked again.
///
/// For as long as a turn takes nothing else is served: no connection, no deadline, no delivery report.
@Loop
public final class LoopTurnObserver {
  /// Has `action` called at the end of each turn, until the observer is released. It must not wait for anything.
  public init(_ action: @escaping @Loop (_ turn: Duration) -> Void) {
    Loop.executor.engine.observers.append((ObjectIdentifier(self), action))
  }

  isolated deinit {
    let identifier = ObjectIdentifier(self)
    Loop.executor.engine.observers.removeAll { $0.identifier == identifier }
  }
}
