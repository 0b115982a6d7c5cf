import EventLoop
import Kafka
import Testing

@Loop
@Suite struct ProducerTests {
  @Test func saysWhereTheRecordStands() async throws {
    let cluster = try EmbeddedCluster(brokers: 1)
    try cluster.createTopic("events", partitions: 1)
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", cluster.bootstrapServers)])
    let producer = try Producer(configuration, deadline: .seconds(10)) { _ in }
    let first = try await producer.send(KafkaRecord(topic: "events", key: [1], value: [2]))
    let second = try await producer.send(KafkaRecord(topic: "events", key: [1], value: nil))
    #expect(first == KafkaPosition(partition: 0, offset: 0))
    #expect(second == KafkaPosition(partition: 0, offset: 1))
    #expect(await producer.close(within: .seconds(10)) == 0)
  }
}
