import AppleSimulator
import EventLoop
import Glibc
import Testing

extension Trial {
  /// Breaks something.
  func begin(_ disruption: Disruption, _ broker: Int) async throws {
    let next = (broker + 1) % 3
    switch disruption {
    case .ingressKilled: await ingress.kill()
    case .ingressEnded: _ = try await ingress.end()
    case .ingressFrozen: ingress.freeze()
    case .keysGone:
      stage.apple.keysAnswer = .unavailable
      await ingress.kill()
      try await ingress.start()
    case .brokerKilled: cluster.kill(broker)
    case .twoBrokersKilled: for one in [broker, next] { cluster.kill(one) }
    case .brokerFrozen: cluster.freeze(broker)
    case .allBrokersFrozen: for one in 0..<3 { cluster.freeze(one) }
    case .brokerUnreachable: cluster.doors[broker].state = .silent
    case .networkCut: for door in cluster.doors { door.state = .shut }
    case .networkSilent: for door in cluster.doors { door.state = .silent }
    case .networkSlow: for door in cluster.doors { door.state = .slow }
    case .diskFull:
      ingress.faults.isDiskFull = true
      for door in cluster.doors { door.state = .silent }
    case .clockForward: ingress.faults.clockOffset = .seconds(2 * 3600)
    case .clockDaysForward: ingress.faults.clockOffset = .seconds(2 * 86_400)
    case .clockBack: ingress.faults.clockOffset = .seconds(-2 * 3600)
    }
  }

  /// Mends it.
  func end(_ disruption: Disruption, _ broker: Int) async throws {
    switch disruption {
    case .ingressKilled, .ingressEnded: try await ingress.start()
    case .ingressFrozen: ingress.thaw()
    case .keysGone: stage.apple.keysAnswer = .keys
    case .brokerKilled, .twoBrokersKilled: try await cluster.startDead()
    case .brokerFrozen: cluster.thaw(broker)
    case .allBrokersFrozen: for one in 0..<3 { cluster.thaw(one) }
    case .brokerUnreachable, .networkCut, .networkSilent, .networkSlow:
      for door in cluster.doors { door.state = .open }
    case .diskFull:
      ingress.faults.isDiskFull = false
      for door in cluster.doors { door.state = .open }
    case .clockForward, .clockDaysForward, .clockBack: ingress.faults.clockOffset = .zero
    }
  }
}
