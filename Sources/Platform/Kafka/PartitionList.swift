import CLibrdkafka
import Glibc

/// librdkafka's list of partitions, each with an offset and what went wrong with it.
@safe struct PartitionList: ~Copyable {
  /// A partition of the list.
  struct Entry {
    let partition: TopicPartition
    let offset: Int64
    /// What was committed beside the offset; empty where that is nothing, or not the question.
    let note: String
    let error: rd_kafka_resp_err_t
  }

  let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?

  /// The partitions without offsets.
  init(_ partitions: Set<TopicPartition>) {
    unsafe pointer = rd_kafka_topic_partition_list_new(CInt(clamping: partitions.count))
    for partition in partitions { add(partition, nil) }
  }

  /// The partitions with their offsets.
  init(_ offsets: [TopicPartition: Int64]) {
    unsafe pointer = rd_kafka_topic_partition_list_new(CInt(clamping: offsets.count))
    for (partition, offset) in offsets { add(partition, offset) }
  }

  /// The partitions with offsets and notes to commit.
  init(_ offsets: [TopicPartition: CommittedOffset]) {
    unsafe pointer = rd_kafka_topic_partition_list_new(CInt(clamping: offsets.count))
    for (partition, offset) in offsets { add(partition, offset.offset, note: offset.note) }
  }

  deinit { unsafe rd_kafka_topic_partition_list_destroy(pointer) }

  private func add(_ partition: TopicPartition, _ offset: Int64?, note: String = "") {
    let added = unsafe rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition)
    if let offset { unsafe added?.pointee.offset = offset }
    guard !note.isEmpty else { return }
    // librdkafka owns the copy from here on, and frees it with the list.
    unsafe added?.pointee.metadata = UnsafeMutableRawPointer(strdup(note))
    unsafe added?.pointee.metadata_size = note.utf8.count
  }

  /// What the list says now.
  var entries: [Entry] { unsafe Self.entries(of: UnsafePointer(pointer)) }

  private static func note(of entry: rd_kafka_topic_partition_t) -> String {
    guard let bytes = unsafe entry.metadata, unsafe entry.metadata_size > 0 else { return "" }
    return unsafe String(
      decoding: UnsafeRawBufferPointer(start: bytes, count: entry.metadata_size), as: UTF8.self)
  }

  /// What a list says that belongs to somebody else.
  static func entries(of list: UnsafePointer<rd_kafka_topic_partition_list_t>?) -> [Entry] {
    guard let list = unsafe list else { return [] }
    return unsafe UnsafeBufferPointer(start: list.pointee.elems, count: Int(list.pointee.cnt)).map { entry in
      unsafe Entry(
        partition: TopicPartition(entry.topic.map { unsafe String(cString: $0) } ?? "", entry.partition),
        offset: entry.offset, note: note(of: entry), error: entry.err)
    }
  }
}

extension [PartitionList.Entry] {
  /// What went wrong, if anything did: with the whole, or with the first partition that has an error.
  func failure(_ whole: rd_kafka_resp_err_t = RD_KAFKA_RESP_ERR_NO_ERROR) -> rd_kafka_resp_err_t? {
    first { $0.error != RD_KAFKA_RESP_ERR_NO_ERROR }?.error ?? (whole == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : whole)
  }

  /// The offsets by partition, without those that librdkafka does not know.
  var offsets: [TopicPartition: Int64] {
    Dictionary(filter { $0.offset >= 0 }.map { ($0.partition, $0.offset) }) { _, last in last }
  }

  /// What was committed by partition, without those that librdkafka does not know.
  var commitments: [TopicPartition: CommittedOffset] {
    Dictionary(filter { $0.offset >= 0 }.map { ($0.partition, CommittedOffset($0.offset, note: $0.note)) }) {
      _, last in last
    }
  }
}
