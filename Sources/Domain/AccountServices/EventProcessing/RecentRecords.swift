import Kafka

/// The last records that were read of a partition. librdkafka brings some a second time now and then, after it has found
/// another leader for instance: those are not another topic's.
struct RecentRecords {
  private static let most: Int64 = 1024

  /// By the remainder of the offset.
  private var digests: [Int] = []
  private var offsets: Range<Int64> = 0..<0

  /// Whether this very record was read.
  func contains(_ record: ConsumedRecord) -> Bool {
    let offset = record.position.offset
    return offsets.contains(offset) && digests[Int(offset % Self.most)] == Self.digest(of: record)
  }

  /// Remembers a record that was read.
  mutating func add(_ record: ConsumedRecord) {
    let offset = record.position.offset
    if digests.isEmpty { digests = [Int](repeating: 0, count: Int(Self.most)) }
    let first = offset == offsets.upperBound ? max(offsets.lowerBound, offset + 1 - Self.most) : offset
    offsets = first..<(offset + 1)
    digests[Int(offset % Self.most)] = Self.digest(of: record)
  }

  private static func digest(of record: ConsumedRecord) -> Int {
    var hasher = Hasher()
    hasher.combine(record.timestamp)
    for bytes in [record.key, record.value] {
      hasher.combine(bytes?.count)
      unsafe bytes?.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
    return hasher.finalize()
  }
}
