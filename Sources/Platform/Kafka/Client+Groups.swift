import CLibrdkafka

extension Client {
  /// Sets how far a group is.
  func resetOffsets(
    of group: ConsumerGroup, to offsets: [TopicPartition: Int64], within limit: Duration
  ) async throws(KafkaError) {
    do throws(KafkaError) {
      try await administer(RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, changes: true, within: limit) { call in
        let list = PartitionList(offsets)
        var request = unsafe rd_kafka_AlterConsumerGroupOffsets_new(group.name, list.pointer)
        unsafe rd_kafka_AlterConsumerGroupOffsets(call.client, &request, 1, call.options, call.answers)
        unsafe rd_kafka_AlterConsumerGroupOffsets_destroy(request)
      } read: { answer throws(KafkaError) in
        var count = 0
        guard let result = unsafe rd_kafka_event_AlterConsumerGroupOffsets_result(answer.event),
          let groups = unsafe rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &count), count == 1
        else { throw .foreignAnswer }
        _ = try unsafe Self.entries(of: groups[0])
      }
    } catch  where error.code == .groupChanged {
      // The broker calls whoever commits from outside an unknown member, while there are known ones.
      throw KafkaError(.groupInUse, detail: "the group \(group) has members: stop them first")
    }
  }

  /// Asks for a group and its members.
  func describe(group: ConsumerGroup, within limit: Duration) async throws(KafkaError) -> GroupDescription {
    try await administer(RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, changes: false, within: limit) { call in
      unsafe group.name.withCString { name in
        var name: UnsafePointer<CChar>? = unsafe name
        unsafe rd_kafka_DescribeConsumerGroups(call.client, &name, 1, call.options, call.answers)
      }
    } read: { answer throws(KafkaError) in
      var count = 0
      guard let result = unsafe rd_kafka_event_DescribeConsumerGroups_result(answer.event),
        let groups = unsafe rd_kafka_DescribeConsumerGroups_result_groups(result, &count), count == 1
      else { throw .foreignAnswer }
      if let error = unsafe KafkaError(borrowing: rd_kafka_ConsumerGroupDescription_error(groups[0])) { throw error }
      return unsafe GroupDescription(groups[0])
    }
  }

  /// What an answer says of a group's partitions; throws what went wrong with the group or with one of them.
  private static func entries(of group: OpaquePointer?) throws(KafkaError) -> [PartitionList.Entry] {
    if let error = unsafe KafkaError(borrowing: rd_kafka_group_result_error(group)) { throw error }
    let entries = unsafe PartitionList.entries(of: rd_kafka_group_result_partitions(group))
    if let failure = entries.failure() { throw KafkaError(failure) }
    return entries
  }
}

extension GroupDescription {
  /// Copies what librdkafka owns.
  fileprivate init(_ group: OpaquePointer?) {
    state =
      switch unsafe rd_kafka_ConsumerGroupDescription_state(group) {
      case RD_KAFKA_CONSUMER_GROUP_STATE_STABLE: .stable
      case RD_KAFKA_CONSUMER_GROUP_STATE_PREPARING_REBALANCE, RD_KAFKA_CONSUMER_GROUP_STATE_COMPLETING_REBALANCE:
        .rebalancing
      case RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY: .empty
      case RD_KAFKA_CONSUMER_GROUP_STATE_DEAD: .dead
      default: .unknown
      }
    members = unsafe (0..<rd_kafka_ConsumerGroupDescription_member_count(group)).map { index in
      unsafe Member(rd_kafka_ConsumerGroupDescription_member(group, index))
    }
  }
}

extension GroupDescription.Member {
  fileprivate init(_ member: OpaquePointer?) {
    name = unsafe String(cString: rd_kafka_MemberDescription_consumer_id(member))
    instance = unsafe rd_kafka_MemberDescription_group_instance_id(member).map { unsafe String(cString: $0) }
    client = unsafe String(cString: rd_kafka_MemberDescription_client_id(member))
    host = unsafe String(cString: rd_kafka_MemberDescription_host(member))
    let list = unsafe rd_kafka_MemberAssignment_partitions(rd_kafka_MemberDescription_assignment(member))
    partitions = Set(unsafe PartitionList.entries(of: list).map(\.partition))
  }
}
