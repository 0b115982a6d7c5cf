import CLibrdkafka
import EventLoop

/// A Kafka cluster inside this process, on loopback: for `siwa dev` and for tests.
///
/// It is librdkafka's own: it knows producers, consumers and groups, keeps about 5 MB for each partition (what is older
/// is forgotten), keeps nothing over a restart, and does not know the requests of `Admin`.
@safe public final class EmbeddedCluster: Sendable {
  /// The cluster and the client that carries it.
  @safe private struct Handles: @unchecked Sendable {
    // @unchecked: librdkafka passes every call on to the cluster's own thread.
    let client: OpaquePointer
    let cluster: OpaquePointer
  }

  private let handles: Handles
  /// The brokers, for the property `bootstrap.servers`.
  public let bootstrapServers: String

  /// Starts a cluster of as many brokers, which answer at once.
  public init(brokers: Int) throws(KafkaError) {
    let settings = ClientConfiguration()
    unsafe rd_kafka_conf_set_log_cb(settings.pointer) { _, _, _, _ in }  // it warns of having no servers to ask
    var words = [CChar](repeating: 0, count: 512)
    let conf = unsafe settings.release()
    guard let client = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, conf, &words, words.count) else {
      unsafe rd_kafka_conf_destroy(conf)
      throw KafkaError(.other, detail: String(terminated: words))
    }
    guard let cluster = unsafe rd_kafka_mock_cluster_new(client, CInt(clamping: brokers)) else {
      unsafe rd_kafka_destroy(client)
      throw KafkaError(.other, detail: "no cluster of \(brokers) brokers can be started in this process")
    }
    unsafe handles = Handles(client: client, cluster: cluster)
    bootstrapServers = unsafe String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
  }

  deinit {
    // Ending its threads takes up to a second, which whoever dropped the cluster, the loop perhaps, must not wait for.
    let handles = handles
    Task {
      let thread = BlockingThread(named: "kafka-cluster")
      await thread.run {
        unsafe rd_kafka_mock_cluster_destroy(handles.cluster)
        unsafe rd_kafka_destroy(handles.client)
      }
      thread.close()
    }
  }

  /// Makes a topic. A topic that nobody made has four partitions.
  public func createTopic(_ name: String, partitions: Int, replicationFactor: Int = 1) throws(KafkaError) {
    let result = unsafe rd_kafka_mock_topic_create(
      handles.cluster, name, CInt(clamping: partitions), CInt(clamping: replicationFactor))
    if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
  }

  /// Makes the cluster say of a name that there is no such topic, instead of making one when it is asked for.
  public func refuseTopic(_ name: String) {
    unsafe rd_kafka_mock_topic_set_error(handles.cluster, name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
  }

  /// Makes the cluster refuse to say who coordinates a group, as one does where ACLs do not let the client know.
  func refuseGroups() {
    let errors = [rd_kafka_resp_err_t](repeating: RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, count: 1000)
    let findCoordinator: Int16 = 10
    unsafe rd_kafka_mock_push_request_errors_array(handles.cluster, findCoordinator, errors.count, errors)
  }

  /// Takes a partition's leader away.
  public func takeLeader(of partition: TopicPartition) {
    unsafe rd_kafka_mock_partition_set_leader(handles.cluster, partition.topic, partition.partition, -1)
  }

  /// Makes all brokers take so long for an answer.
  public func setDelay(_ delay: Duration) {
    unsafe rd_kafka_mock_broker_set_rtt(handles.cluster, -1, delay.forLibrdkafka)
  }

  /// Makes all brokers hang up and refuse connections, or take them again.
  ///
  /// They close their sockets and bind the addresses anew, and librdkafka aborts the process where it cannot. So this is
  /// not for a process that starts programs in other ways than this package's.
  public func setReachable(_ isReachable: Bool) {
    if isReachable {
      unsafe rd_kafka_mock_broker_set_up(handles.cluster, -1)
    } else {
      ChildProcess.whileNoneIsStarted { _ = unsafe rd_kafka_mock_broker_set_down(handles.cluster, -1) }
    }
  }
}
