extension ClientProfile {
  /// What a consumer depends on, and what suits one that loses nothing.
  static func consumer(_ membership: GroupMembership?) -> ClientProfile {
    ClientProfile(
      defaults: [
        (name: "auto.offset.reset", value: "earliest"),
        (name: "check.crcs", value: "true"),
        (name: "queued.max.messages.kbytes", value: "8192"),
        (name: "reconnect.backoff.max.ms", value: "1000"),
        (name: "socket.nagle.disable", value: "true"),
      ],
      requirements: [
        Requirement(
          names: ["enable.auto.commit", "auto.commit.enable"], value: "false",
          reason: "an offset is committed after what was done with the record, by the program"),
        Requirement(
          names: ["group.id"], value: membership?.group.name ?? "none",
          reason: "the program names its group itself"),  // librdkafka assigns no partitions without a name here
        Requirement(
          names: ["group.instance.id"], value: membership?.instance, reason: "the program names its instance itself"),
        Requirement(
          names: ["partition.assignment.strategy"], value: "cooperative-sticky",
          reason: "a partition stays where it is unless it has to move, and is handed over with its offsets committed"),
        log,
      ])
  }
}
