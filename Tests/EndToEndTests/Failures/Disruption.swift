/// One way in which things break. The raw value is its row in the table of docs/reliability.md.
enum Disruption: String, CaseIterable {
  case ingressKilled = "ingress killed (SIGKILL), started again"
  case ingressEnded = "ingress ended (SIGTERM), started again"
  case ingressFrozen = "ingress frozen (SIGSTOP)"
  case brokerKilled = "a broker killed (SIGKILL), started again"
  case twoBrokersKilled = "two brokers killed: below `min.insync.replicas`"
  case brokerFrozen = "a broker frozen (SIGSTOP)"
  case allBrokersFrozen = "all brokers frozen"
  case brokerUnreachable = "a broker that the ingress cannot reach"
  case networkCut = "connections to the brokers reset and refused"
  case networkSilent = "packets to and from the brokers dropped"
  case networkSlow = "network to the brokers slow"
  case diskFull = "disk full, while packets are dropped"
  case clockForward = "clock two hours forward"
  case clockDaysForward = "clock two days forward"
  case clockBack = "clock two hours back"
  case keysGone = "keys endpoint fails, ingress killed and started again"

  /// What a disruption breaks: two that break the same are never there together.
  enum Place { case ingress, brokers, clock }

  /// What this one breaks.
  var place: Place {
    switch self {
    case .ingressKilled, .ingressEnded, .ingressFrozen, .keysGone: .ingress
    case .clockForward, .clockDaysForward, .clockBack: .clock
    default: .brokers
    }
  }
}
