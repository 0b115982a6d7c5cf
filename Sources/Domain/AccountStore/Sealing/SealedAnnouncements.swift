import AccountEvents
import Cryptography

/// What is to be said of one event, as it is kept. It is sealed as a whole: the key of a record is a person's name.
struct SealedAnnouncements {
  let number: Int64
  let consumer: ConsumerName
  let partition: Int32
  let records: [UInt8]

  /// What a row holds; nil where nobody can have written it.
  init?(number: Int64, consumer: String, partition: Int64, records: [UInt8]) {
    guard let consumer = ConsumerName(consumer), let partition = Int32(exactly: partition) else { return nil }
    (self.number, self.consumer, self.partition, self.records) = (number, consumer, partition, records)
  }

  /// Seals announcements under that number.
  init(
    _ announcements: [Announcement], number: Int64, of consumer: ConsumerName, partition: Int32, with key: AES256GCM
  ) throws(AccountStoreError) {
    (self.number, self.consumer, self.partition) = (number, consumer, partition)
    records = try key.seal(announcements.packed, for: .announcements(number, of: consumer, partition))
  }

  /// Opens them.
  func opened(with key: AES256GCM) throws(AccountStoreError) -> NumberedAnnouncements {
    let packed = try key.open(records, from: .announcements(number, of: consumer, partition))
    guard let announcements = [Announcement](packed: packed) else {
      throw AccountStoreError(.damaged, "announcements \(number): not of the form in which they were written")
    }
    return NumberedAnnouncements(number: number, announcements: announcements)
  }
}
