import AccountEvents
import EventLoop
import TestSupport
import Testing

extension ConsumerTrial {
  /// Has a disruption come and go.
  func disrupt(_ disruption: ConsumerDisruption) async throws {
    switch disruption {
    case .oneKilled:
      let chosen = one()
      for member in chosen.shuffled(using: &random) {
        await member.kill()
        try await pass()
      }
      try await start(chosen)
    case .allKilled:
      for member in members.shuffled(using: &random) { await member.kill() }
      try await pass()
      try await start(members)
    case .oneEnded:
      let chosen = one()
      for member in chosen { expectGoodEnd(try await member.end(), of: member) }
      try await pass()
      try await start(chosen)
    case .oneFrozen:
      let chosen = one()
      for member in chosen { member.freeze() }
      // Longer than its session: the fault itself. Nobody waits for it; what comes of it is judged at the end.
      try await Loop.sleep(for: .seconds(8))
      for member in chosen { member.thaw() }
    case .brokerKilled:
      stage.broker.kill()
      try await pass()
      try await stage.broker.start()
    case .brokerFrozen:
      try stage.broker.freeze()
      try await pass()
      stage.broker.thaw()
    case .databaseGone:
      database?.kill()
      try await pass()
      try await database?.start()
    case .auditLogKilled:
      await auditLog?.program.kill()
      try await pass()
      try await startAuditLog()
    case .targetSilent:
      let customers = try stage.shop.customerCount()
      service.isSilent = true
      // Who is asked to erase somebody does not answer, and yet the shop erases: as long as there is anybody.
      try await until {
        let left = try stage.shop.customerCount()
        return left < 20 || (service.held > 0 && left < customers)
      }
      try await pass()
      service.isSilent = false
    case .rightMissing:
      // Where there is a rule for a topic, nobody may do anything else there.
      let rules = ["Read", "Describe", "DescribeConfigs"].map {
        AccessRule(program: "ANONYMOUS", resource: .topic, name: Topic.outcomes.name, operation: $0)
      }
      let control = try AccessControl(stage.broker.bootstrapServers)
      try control.grant(rules)
      try await until {
        members.contains { $0.hasSaid("the log does not take what is to be said: it is tried again") }
      }
      try await pass()
      for rule in rules { try control.takeAway(rule) }
    case .diskFull:
      faults?.isDiskFull = true
      // What is in the log's file already may be written over for a while.
      try await until { members.contains { $0.hasSaid("the account store fails: events wait") } }
      try await pass()
      faults?.isDiskFull = false
    }
  }

  /// Starts them, and waits until partitions have moved to each.
  func start(_ members: [BreakableMember]) async throws {
    for member in members { try await member.start() }
    for member in members { try await member.untilItHasPartitions() }
  }

  /// A member of each group, any.
  private func one() -> [BreakableMember] {
    stride(from: 0, to: members.count, by: 2).map { members[$0 + Int.random(in: 0...1, using: &random)] }
  }
}
