import EventLoop
import Testing

@testable import Kafka

@Loop @Suite struct StatisticsTests {
  @Test func addsUpWhatBrokersSay() throws {
    let text = """
      {"name":"siwa","type":"producer","ts":5016483227792,"msg_cnt":3,"msg_size":4000,"brokers":{
       "a:9092/1":{"nodeid":1,"txerrs":1,"txretries":2,"req_timeouts":3,"rtt":{"min":1,"p99":9000},"throttle":{"max":7}},
       "b:9092/2":{"nodeid":2,"txerrs":10,"txretries":20,"req_timeouts":30,"rtt":{"p99":800},"throttle":{"max":50}}},
       "topics":{},"tx":4}
      """
    let statistics = try KafkaStatistics(reading: Array(text.utf8))
    #expect([statistics.queuedRecords, statistics.queuedBytes] == [3, 4000])
    #expect([statistics.roundTrip, statistics.throttle] == [9000, 50])
    #expect([statistics.failures, statistics.retries, statistics.timeouts] == [11, 22, 33])
  }

  @Test(.timeLimit(.minutes(30))) func aProducerTellsHowItIs() async throws {
    let cluster = try Cluster.embedded()
    let topic = try await cluster.makeTopic(1)
    try await cluster.withProducer([("statistics.interval.ms", "50")]) { producer in
      let (told, tell) = AsyncStream.makeStream(of: KafkaStatistics.self)
      producer.onStatistics = { new, _ in tell.yield(new) }
      _ = try await producer.send(KafkaRecord(topic: topic, key: nil, value: [1]))
      // Each tells of the requests since the last one, and on a busy machine nothing may be queued any more in all that
      // follow. Without either the time limit ends it.
      var hasRoundTrip = false
      for await statistics in told {
        hasRoundTrip = hasRoundTrip || statistics.roundTrip > 0
        if hasRoundTrip, statistics.queuedRecords == 0 { break }
      }
    }
  }
}
