import TestSupport
import Testing

@Suite struct EmbeddedClusterTests {
  @Test(.timeLimit(.minutes(30)), arguments: contract) func keepsTheContract(_ clause: Clause) async throws {
    try await clause.check(.embedded())
  }
}

@Suite(RealBroker.isThere) struct RealBrokerTests {
  @Test(.timeLimit(.minutes(30)), arguments: contract) func keepsTheContract(_ clause: Clause) async throws {
    try await clause.check(.real(RealBroker.shared()))
  }
}
