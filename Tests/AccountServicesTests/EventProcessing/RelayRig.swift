import AccountEvents
import AccountServices
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// The e-mail relay over topics in memory, and what it has said.
@Loop enum RelayRig {
  nonisolated static let address = RelayAddress("ada@privaterelay.appleid.com")

  static func relay(beside other: ProcessorRig? = nil) async throws -> ProcessorRig {
    try await ProcessorRig(beside: other) { EmailRelay.consumer($0.store) }
  }

  static func mail(_ number: Int, isEnabled: Bool) throws -> AccountEvent {
    let address = try #require(address)
    return .sample(
      number, isEnabled ? .emailEnabled(address, isPrivate: true) : .emailDisabled(address, isPrivate: true))
  }

  static func states(_ rig: ProcessorRig) throws -> [String] {
    try rig.cluster.appended(on: Topic.emailRelay.name).map { record in
      try RelayRecord(decoding: try #require(record.value)).state.status.rawValue
    }
  }
}
