package import EventLoop
package import Kafka

/// A producer that is replaced by a new one where librdkafka declares it dead (the cluster lost what it had acknowledged,
/// mostly): otherwise every record would be refused until somebody restarts the program.
@Loop
package final class RenewableProducer {
  private let makeProducer: @Loop () throws(KafkaError) -> Producer
  /// Nil from the end of a dead one until the next.
  private var producer: Producer?
  private var burial: Task<Void, Never>?
  private var isClosed = false

  /// A producer that is made by `makeProducer`, now and as often as one has died.
  package init(_ makeProducer: @escaping @Loop () throws(KafkaError) -> Producer) throws(KafkaError) {
    self.makeProducer = makeProducer
    producer = try makeProducer()
  }

  /// The producer; a new one where the last has died and is gone.
  func living() throws(KafkaError) -> Producer {
    if let producer { return producer }
    if isClosed { throw KafkaError(.closed, detail: "the producer is closed") }
    if burial != nil { throw KafkaError(.fatal, detail: "the producer died; its connections are being closed") }
    let producer = try makeProducer()
    self.producer = producer
    return producer
  }

  /// Ends a producer that has answered with this error, if that says that it is dead. The next one sends nothing before its
  /// connections are closed: what the dead one still had on the wire must not arrive behind what the next one sends.
  func bury(_ dead: Producer, after error: KafkaError) {
    guard error.code == .fatal, producer === dead, !isClosed else { return }
    producer = nil
    burial = Task(executorPreference: Loop.executor) { await self.end(dead) }
  }

  private func end(_ dead: Producer) async {
    await dead.close(within: .zero)
    burial = nil
  }

  /// Ends the producer as its own `close` does. There is no other afterwards.
  package func close(within patience: Duration) async {
    isClosed = true
    await producer?.close(within: patience)
    producer = nil
    await burial?.value
  }
}
