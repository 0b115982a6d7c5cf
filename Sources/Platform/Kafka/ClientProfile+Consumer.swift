import EventLoop

extension ClientProfile {
  /// What a consumer depends on, and what suits one that loses nothing.
  static func consumer(_ membership: GroupMembership?) -> ClientProfile {
    ClientProfile(
      defaults: [
        (name: "check.crcs", value: "true"),
        (name: "queued.max.messages.kbytes", value: "8192"),
        (name: "reconnect.backoff.max.ms", value: "1000"),
        (name: "socket.nagle.disable", value: "true"),
      ],
      requirements: [
        Requirement(
          names: ["auto.offset.reset"], value: "earliest",
          reason: "a group that is new, or has fallen behind what is kept, would pass over records"),
        Requirement(
          names: ["enable.auto.commit", "auto.commit.enable"], value: "false",
          reason: "an offset is committed after what was done with the record, by the program"),
        Requirement(
          names: ["group.id"], value: membership?.group.name ?? noGroup,
          reason: "the program names its group itself"),
        Requirement(
          names: ["group.instance.id"], value: membership?.instance, reason: "the program names its instance itself"),
        Requirement(
          names: ["partition.assignment.strategy"], value: "cooperative-sticky",
          reason: "a partition stays where it is unless it has to move, and is handed over with its offsets committed"),
        noTopics, allTopics, log,
      ],
      minima: [newPartitions] + (membership.map { [longHandover($0)] } ?? []))
  }

  private static func longHandover(_ membership: GroupMembership) -> Minimum {
    Minimum(
      name: "max.poll.interval.ms", value: Int(membership.handover.wholeNanoseconds / 1_000_000) * 2,
      reason: "a member that hands partitions over would be put out of its group")
  }

  /// The group of a reader without one: librdkafka assigns no partitions without a name here. Nothing is committed under
  /// it, and nobody has to be allowed to use it: see `Consumer`.
  private static let noGroup = "none"
}
