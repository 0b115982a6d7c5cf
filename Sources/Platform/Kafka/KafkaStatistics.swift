import JSON

/// What librdkafka says of a client now and then: `statistics.interval.ms`.
public struct KafkaStatistics: Sendable, Hashable {
  /// How many records wait in librdkafka's queue or for their acknowledgement.
  public private(set) var queuedRecords: Int64 = 0
  /// How many bytes these are.
  public private(set) var queuedBytes: Int64 = 0
  /// From a request to its answer, in microseconds: of the slowest broker, what 99 of 100 requests stayed below.
  public private(set) var roundTrip: Int64 = 0
  /// How long a broker has held back an answer at most, because of a quota, in milliseconds.
  public private(set) var throttle: Int64 = 0
  /// How many requests were sent again, to all brokers since the client was made.
  public private(set) var retries: Int64 = 0
  /// How many requests could not be sent.
  public private(set) var failures: Int64 = 0
  /// How many requests were not answered in time.
  public private(set) var timeouts: Int64 = 0

  private static let limits = JSONLimits(bytes: 16 << 20, depth: 16, members: 100_000)

  /// Nothing was said yet.
  public init() {}

  /// Reads librdkafka's document.
  init(reading text: [UInt8]) throws(JSONError) {
    var statistics = KafkaStatistics()
    try unsafe JSONReader.read(text.span.bytes, Self.limits) { reader throws(JSONError) in
      try reader.readObject { name, value throws(JSONError) in
        switch name {
        case "msg_cnt": statistics.queuedRecords = try value.readInteger()
        case "msg_size": statistics.queuedBytes = try value.readInteger()
        case "brokers":
          try value.readObject { _, broker throws(JSONError) in try statistics.readBroker(&broker) }
        default: break
        }
      }
    }
    self = statistics
  }

  private mutating func readBroker(_ broker: inout JSONReader) throws(JSONError) {
    try broker.readObject { name, value throws(JSONError) in
      switch name {
      case "txretries": retries += try value.readInteger()
      case "txerrs": failures += try value.readInteger()
      case "req_timeouts": timeouts += try value.readInteger()
      case "rtt":
        try value.readObject { name, value throws(JSONError) in
          if name == "p99" { roundTrip = max(roundTrip, try value.readInteger()) }
        }
      case "throttle":
        try value.readObject { name, value throws(JSONError) in
          if name == "max" { throttle = max(throttle, try value.readInteger()) }
        }
      default: break
      }
    }
  }
}
