import AccountEvents
import Cryptography

/// An announcement as it is kept. Its record is sealed as a whole: the key of it is a person's name.
struct SealedAnnouncement {
  let number: Int64
  let consumer: ConsumerName
  let partition: Int32
  let topic: Topic
  let record: [UInt8]

  /// What a row holds; nil where nobody can have written it.
  init?(number: Int64, consumer: String, partition: Int64, topic: String, record: [UInt8]) {
    guard let consumer = ConsumerName(consumer), let partition = Int32(exactly: partition) else { return nil }
    (self.number, self.consumer, self.partition) = (number, consumer, partition)
    (self.topic, self.record) = (Topic(name: topic), record)
  }

  /// Seals an announcement under that number.
  init(
    _ announcement: Announcement, number: Int64, of consumer: ConsumerName, partition: Int32, with key: AES256GCM
  ) throws(AccountStoreError) {
    (self.number, self.consumer, self.partition, topic) = (number, consumer, partition, announcement.topic)
    record = try key.seal(
      announcement.packed, for: .announcement(number, of: consumer, partition, announcement.topic))
  }

  /// Opens it.
  func opened(with key: AES256GCM) throws(AccountStoreError) -> Announcement {
    let packed = try key.open(record, from: .announcement(number, of: consumer, partition, topic))
    guard let announcement = Announcement(packed: packed, topic: topic) else {
      throw AccountStoreError(.damaged, "announcement \(number): not of the form in which it was written")
    }
    return announcement
  }
}
